"""Everything that an operator may set by value: the limits, and the shape of the site.

The hooks of `ThrottleMiddleware` are not here: they are code, and a configuration file cannot hold them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from throttle.server.address import HEADERS, Networks
from throttle.server.networks import Prefixes
from throttle.server.policy import AUTO, Limits
from throttle.server.refusal import REASONS


@dataclass(frozen=True, slots=True)
class PathLimits:
    """Other limits for requests whose path is `path` or lies below it, and whose method is in `methods` (None: any).

    Their hits are counted apart from those of the rest of the site. The load and the pause are the whole site's: a load
    beyond `load_max` here concerns these paths only, and there is no pause of a path. Raises ValueError.
    """

    path: str
    limits: Limits
    methods: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _need_paths("path", [self.path])
        if self.methods is not None:
            names: object = self.methods
            is_list = isinstance(names, list | tuple) and bool(names)
            if not is_list or not all(isinstance(m, str) and m.isupper() for m in self.methods):
                raise ValueError(f"methods={self.methods!r}: a list of methods in capitals is needed, such as GET")
            object.__setattr__(self, "methods", tuple(self.methods))
        if self.limits.paused:
            raise ValueError(f"path {self.path!r}: there is no pause of a path; pause the whole site, in its limits")


SHORTEST_SECRET = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one site. Raises ValueError, naming the setting, its value and what is allowed.

    - `limits`: the thresholds. `path_limits`: others for some paths; the first that fits counts.
    - `enforce`: False refuses and delays nobody, and counts and logs what would have been (a dry run).
    - `trusted_proxies`: addresses or networks whose forwarding headers are believed («unix» for a unix socket), and
      `forwarded_header`, the one they write. Without them the socket's address counts.
    - `ipv6_prefix`: bits of an IPv6 address that count.
    - `network_prefixes`, `wide_network_prefixes`: bits of an IPv4 and of an IPv6 address that make a network, and a
      wider one, for the limits that count by network.
    - `cookie_secret`: signs the cookies of `Limits(cookies=True)`; all workers of a site need the same. None: each
      process draws its own.
    - `exempt_paths`, `exempt_prefixes`: never throttled; see `exempt.py`. None: health checks, and every mounted
      `StaticFiles`. `/robots.txt` is exempt always. `exempt_preflights`: CORS preflights.
    - `exempt_callers`, `exempt_agents`: addresses or networks, and parts of agents, that no rule concerns.
    - `banned_callers`, `banned_agents`: those that are answered 403 and nothing else.
    - `api_paths`: who asks for such a path, or below it, is an API client, whatever its agent.
    - `crawlers`, `bots`, `browsers`: parts of agents (in any case) that decide the class before the lists do.
    - `agent_table`: a file with the names of robots, in the form of `agent_table.txt`, in place of the shipped one; it
      is read again when it changes, and a broken one changes nothing.
    - `crawler_ranges`: a directory with the lists of crawlers' addresses, which `throttle ranges` downloads;
      `reverse_dns`: ask DNS who a crawler is. Both matter only where the limits say `verify_crawlers`.
    - `status`: the status of refusals, one for all or by reason (`REASONS`), such as `{"hit_stack": 429}`; else 503.
    - `rate_limit_fields`: write RateLimit and RateLimit-Policy.
    - `count_streams`: WebSockets and event streams stay in the load until they end.
    - `release_at`: «end», a request is in the load until the application has sent all of its answer, however slowly the
      caller reads; «start», until the answer starts: for applications that begin an answer when they have all of it.
    """

    limits: Limits = field(default_factory=Limits)
    path_limits: Sequence[PathLimits] = ()
    enforce: bool = True
    trusted_proxies: Sequence[str] = ()
    forwarded_header: str | None = None
    ipv6_prefix: int = 64
    network_prefixes: Prefixes = (24, 48)
    wide_network_prefixes: Prefixes = (16, 32)
    cookie_secret: str | None = field(default=None, repr=False)
    exempt_paths: Sequence[str] | None = None
    exempt_prefixes: Sequence[str] | None = None
    exempt_preflights: bool = True
    exempt_callers: Sequence[str] = ()
    exempt_agents: Sequence[str] = ()
    banned_callers: Sequence[str] = ()
    banned_agents: Sequence[str] = ()
    api_paths: Sequence[str] = ()
    crawlers: Sequence[str] = ()
    bots: Sequence[str] = ()
    browsers: Sequence[str] = ()
    agent_table: str | None = None
    crawler_ranges: str | None = None
    reverse_dns: bool = True
    status: int | Mapping[str, int] = 503
    rate_limit_fields: bool = True
    count_streams: bool = False
    release_at: str = "end"

    def __post_init__(self) -> None:
        if not isinstance(self.limits, Limits):
            raise ValueError(f"limits={self.limits!r}: a Limits is needed")
        paths: object = self.path_limits
        if not isinstance(paths, list | tuple) or not all(isinstance(one, PathLimits) for one in paths):
            raise ValueError(f"path_limits={self.path_limits!r}: a list of PathLimits is needed")
        for name in ("enforce", "exempt_preflights", "rate_limit_fields", "count_streams", "reverse_dns"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r}: True or False is needed")
        for name, what in (("crawler_ranges", "directory"), ("agent_table", "file")):
            path = getattr(self, name)
            if path is not None and not (isinstance(path, str) and path):
                raise ValueError(f"{name}={path!r}: the path of a {what} is needed")
        if self.release_at not in ("end", "start"):
            raise ValueError(f'release_at={self.release_at!r}: "end" or "start" is needed')
        for name in ("trusted_proxies", "exempt_callers", "banned_callers"):
            Networks(getattr(self, name), name)
        for limits in self.every_limits:
            Networks(limits.pause_exempt, "pause_exempt")
        for name in ("exempt_agents", "banned_agents", "crawlers", "bots", "browsers"):
            _need_texts(name, getattr(self, name))
        for name in ("exempt_paths", "exempt_prefixes", "api_paths"):
            _need_paths(name, getattr(self, name))
        if self.exempt_prefixes is not None and "/" in self.exempt_prefixes:
            raise ValueError("exempt_prefixes: «/» would exempt the whole site; name the prefix of its files")
        if isinstance(self.ipv6_prefix, bool) or self.ipv6_prefix not in range(16, 129):
            raise ValueError(f"ipv6_prefix={self.ipv6_prefix!r}: a whole number from 16 to 128 is needed")
        for name in ("network_prefixes", "wide_network_prefixes"):
            object.__setattr__(self, name, _need_prefixes(name, getattr(self, name)))
        secret = self.cookie_secret
        if secret is not None and (not isinstance(secret, str) or len(secret) < SHORTEST_SECRET):
            # Not shown, since errors are logged.
            raise ValueError(f"cookie_secret: a text of at least {SHORTEST_SECRET} characters is needed")
        header = self.forwarded_header
        if header is not None and (not isinstance(header, str) or header.lower() not in HEADERS):
            raise ValueError(f"forwarded_header={header!r}: one of {', '.join(HEADERS)} is needed")
        for reason, status in self.statuses.items():
            if reason.partition(":")[0] not in ("*", *REASONS):
                raise ValueError(f"status={self.status!r}: no refusal is called {reason!r}, only {', '.join(REASONS)}")
            if isinstance(status, bool) or status not in range(400, 600):
                raise ValueError(f"status={self.status!r}: {reason} needs a status from 400 to 599")

    @property
    def verifies(self) -> bool:
        """Somewhere on the site crawlers are verified."""
        return any(limits.verify_crawlers for limits in self.every_limits)

    @property
    def finds_load_max(self) -> bool:
        """Somewhere on the site `load_max` is to be found out."""
        return any(limits.load_max == AUTO for limits in self.every_limits)

    @property
    def every_limits(self) -> tuple[Limits, ...]:
        """Those of the site, and those of its paths."""
        return (self.limits, *(one.limits for one in self.path_limits))

    @property
    def statuses(self) -> dict[str, int]:
        """The status by reason; «*» for all others."""
        return {"*": 503, **self.status} if isinstance(self.status, Mapping) else {"*": self.status}


class SettingsDict(TypedDict, total=False):
    """The same, as keyword arguments."""

    limits: Limits
    path_limits: Sequence[PathLimits]
    enforce: bool
    trusted_proxies: Sequence[str]
    forwarded_header: str | None
    ipv6_prefix: int
    network_prefixes: Prefixes
    wide_network_prefixes: Prefixes
    cookie_secret: str | None
    exempt_paths: Sequence[str] | None
    exempt_prefixes: Sequence[str] | None
    exempt_preflights: bool
    exempt_callers: Sequence[str]
    exempt_agents: Sequence[str]
    banned_callers: Sequence[str]
    banned_agents: Sequence[str]
    api_paths: Sequence[str]
    crawlers: Sequence[str]
    bots: Sequence[str]
    browsers: Sequence[str]
    agent_table: str | None
    crawler_ranges: str | None
    reverse_dns: bool
    status: int | Mapping[str, int]
    rate_limit_fields: bool
    count_streams: bool
    release_at: str


def _need_prefixes(name: str, prefixes: object) -> Prefixes:
    if isinstance(prefixes, list | tuple) and len(prefixes) == 2:
        ipv4, ipv6 = prefixes
        if type(ipv4) is type(ipv6) is int and 8 <= ipv4 <= 32 and 16 <= ipv6 <= 128:
            return ipv4, ipv6
    raise ValueError(f"{name}={prefixes!r}: two whole numbers are needed, of 8 to 32 and of 16 to 128 bits")


def _need_paths(name: str, paths: object) -> None:
    if paths is None:
        return
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise ValueError(f"{name}={paths!r}: a list of paths is needed, each beginning with /")


def _need_texts(name: str, texts: object) -> None:
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{name}={texts!r}: a list of non-empty texts is needed")
