"""Who asks, and under which keys the hits count.

A caller cannot choose who it is: the address comes from the socket, or from trusted proxies (`address.py`); the agent
is cut short before anything looks at it; keys are hashes that no outsider can foresee.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Protocol

from starlette.types import Scope

from throttle.server.acquaintances import NEVER, Acquaintance
from throttle.server.address import HEADERS, AddressReader, Networks, packed_address
from throttle.server.agent_cache import AgentCache
from throttle.server.agents import LONGEST, Agent, CallerClass, cut
from throttle.server.crawler_operators import Operator
from throttle.server.evidence import Finding, has_fetch_metadata, is_modern_browser
from throttle.server.keys import FurtherKeys
from throttle.server.path import Paths, app_path
from throttle.server.policy import Limits
from throttle.server.rule import Hashes
from throttle.server.settings import Settings
from throttle.server.stores import Digest
from throttle.server.tally import Tally
from throttle.server.verify import Verifier

Classify = Callable[[bytes], Agent]
IsWebApi = Callable[[Scope], bool]
Identify = Callable[[Scope], str | None]


class Rules:
    """What is asked of one class of caller at one place of the site, compiled once."""

    __slots__ = (
        "caller_class",
        "finding",
        "further",
        "limits",
        "policy_field",
        "prepared",
        "rank",
        "standing",
        "tally",
    )

    def __init__(
        self,
        caller_class: CallerClass,
        standing: "Standing",
        limits: Limits,
        prepared: Any,
        rank: int,
        policy_field: bytes,
        tally: Tally,
        finding: Finding = Finding.UNKNOWN,
    ) -> None:
        self.caller_class = caller_class
        self.standing = standing
        self.limits = limits
        self.prepared = prepared
        """in the store's form"""
        self.rank = rank
        self.policy_field = policy_field
        """the value of RateLimit-Policy"""
        self.tally = tally
        self.finding = finding
        """what decided beside the agent"""
        self.further: Further | None = None
        """what is told apart beyond class and place"""


@dataclass(slots=True, eq=False)
class Further:
    """What `Limits.modern` tells apart within one class at one place of the site."""

    parts: Rules | None = None
    """for what a page loads"""
    newcomer: Rules | None = None
    """for a browser without a cookie"""
    gives_cookie: bool = False
    """these are the newcomer's"""
    acquainted: Rules | None = None
    """for a bot that is an acquaintance..."""
    acquaintance: Acquaintance = NEVER
    """...as it is from then on"""


Caller = tuple[Rules, Hashes, str, bytes]
"""One request's sender: what is asked of its class; its keys; its address (an IPv4 address, an IPv6 network, or
«unknown»); its User-Agent, cut to 512 bytes. A bare tuple, since one is made for each request."""


class Who(NamedTuple):
    """Who asks, as far as the throttle knows. Its texts are ours or the operator's, never the caller's."""

    caller_class: CallerClass
    crawler: str | None
    """its name, if it is a known crawler"""
    finding: Finding
    """what is known beside the agent"""
    why: str
    """what decided: the finding, else «web api» or what the agent's class rests on (`agents.WHYS`)"""


FORWARDING = frozenset(name.encode() for name in HEADERS)


class Standing(Enum):
    """What an operator's lists say of a caller, before any rule."""

    RULED = "ruled"
    EXEMPT = "exempt"
    BANNED = "banned"


class Compile(Protocol):
    """The rules for a class of caller at a place of the site (0, or that of one of the path limits, from 1)."""

    def __call__(
        self,
        caller_class: CallerClass,
        place: int,
        standing: Standing,
        *,
        is_stack_exempt: bool,
        finding: Finding = Finding.UNKNOWN,
    ) -> Rules: ...


class Claim(NamedTuple):
    """What an agent claims and can be checked."""

    operator: Operator | None
    """whose crawler it says it is; None for who says that it is a modern browser"""
    rules: dict[Finding, Rules]
    """for each finding that changes them"""


Profile = tuple[Rules, Rules, str | None, Claim | None]
"""All that follows from an agent and a place of the site: the rules for it, and for it as an API client; its name if it
is a known crawler; what is to be checked."""


class CallerReader:
    """Reads the caller from an ASGI scope, in about a microsecond."""

    def __init__(
        self,
        compiled: Compile,
        settings: Settings,
        *,
        classify: Classify,
        is_web_api: IsWebApi | None = None,
        identify: Identify | None = None,
        verify: Verifier | None = None,
        further_keys: FurtherKeys | None = None,
        digest: Digest = hash,
    ) -> None:
        self._compiled = compiled
        self._further_keys = further_keys
        self._digest = digest
        self._address = AddressReader(
            trusted_proxies=settings.trusted_proxies,
            forwarded_header=settings.forwarded_header,
            ipv6_prefix=settings.ipv6_prefix,
        )
        self._reads_address = self._address.reads_headers
        # A crawler is checked by its address in full, of which the counted one may be only the network.
        self._full_address = AddressReader(
            trusted_proxies=settings.trusted_proxies, forwarded_header=settings.forwarded_header, ipv6_prefix=128
        )
        self._verify = verify
        self._classify = classify
        self._own = [
            (Words(settings.crawlers), CallerClass.KNOWN_CRAWLER),
            (Words(settings.bots), CallerClass.ASSUMED_BOT),
            (Words(settings.browsers), CallerClass.BROWSER),
        ]
        places = (settings.limits, *(one.limits for one in settings.path_limits))
        self._stack_exempt = [Words(limits.stack_exempt_agents) for limits in places]
        self._exempt_agents = Words(settings.exempt_agents)
        self._banned_agents = Words(settings.banned_agents)
        self._exempt_callers = Networks(settings.exempt_callers, "exempt_callers", settings.ipv6_prefix)
        self._banned_callers = Networks(settings.banned_callers, "banned_callers", settings.ipv6_prefix)
        self._has_callers_lists = bool(self._exempt_callers or self._banned_callers)
        self._path_limits = [(Paths([one.path]), one.methods) for one in settings.path_limits]
        self._api_paths = Paths(settings.api_paths)
        self._is_web_api = is_web_api
        self._has_web_api = bool(self._api_paths) or is_web_api is not None
        self._identify = identify
        self._profiles = [Profiles(partial(self._profile_of, place)) for place in range(len(places))]
        """by place; that of the rest of the site first"""
        self._profiles_elsewhere = self._profiles[0]
        if isinstance(cache := getattr(classify, "__self__", None), AgentCache):
            for profiles in self._profiles:
                cache.clear_too(profiles)
        self._is_plain = not (
            self._path_limits
            or self._has_web_api
            or self._reads_address
            or self._has_callers_lists
            or identify is not None
            or further_keys is not None
        )
        """nothing is looked at but the socket's address and the agent"""

    def __call__(self, scope: Scope) -> Caller:
        headers = scope["headers"]
        agent = b""
        for name, value in headers:
            if name == b"user-agent":  # given twice, the first counts
                agent = value if len(value) <= LONGEST else cut(value)
                break
        client = scope.get("client")
        if self._is_plain and client is not None and ":" not in client[0]:
            rules, _, crawler, claim = self._profiles_elsewhere[agent]
            if claim is None:
                address = client[0][:64]  # the kernel wrote it: an IPv4 address as it should be
                digest = self._digest
                crawlers = 0 if crawler is None else digest((address, crawler))
                return rules, (0, digest((address, agent)), crawlers), address, agent
        place = self._place(scope) if self._path_limits else 0
        rules, as_api_client, crawler, claim = self._profiles[place][agent]
        if self._has_web_api and self._calls_web_api(scope):
            rules = as_api_client
        if claim is not None and (finding := self._finding(claim.operator, scope)) is not Finding.UNKNOWN:
            rules = claim.rules[finding]
        if self._reads_address or client is None or ":" in client[0]:
            address = self._address(client, headers)
        else:
            address = client[0][:64]
        if self._has_callers_lists:
            rules = self._by_address(address, rules)
        user = None if self._identify is None else self._identify(scope) or None
        digest = self._digest
        hashes = (
            0,
            digest((address, agent)) if user is None else digest((user,)),
            0 if crawler is None else digest((address, crawler)),
        )
        if self._further_keys is None:
            return rules, hashes, address, agent
        return self._further_keys.of(headers, rules, hashes, address, agent, user is not None)

    def who(self, scope: Scope) -> Who:
        """The same caller, told for people."""
        rules, _, _, raw = self(scope)
        agent = self._own_lists(raw) or self._classify(raw)
        if rules.finding is not Finding.UNKNOWN:
            return Who(rules.caller_class, agent.crawler, rules.finding, rules.finding.value)
        why = agent.why if rules.caller_class is agent.caller_class else "web api"
        return Who(rules.caller_class, agent.crawler, rules.finding, why)

    def ignores_a_proxy(self, scope: Scope) -> bool:
        """A request that a proxy may have passed on, whose forwarding header is not believed."""
        return not self._reads_address and any(name in FORWARDING for name, _ in scope["headers"])

    def _finding(self, operator: Operator | None, scope: Scope) -> Finding:
        """What the rest of the request, and its address, say of what the agent claims."""
        if operator is None:
            # A WebSocket's handshake has no fetch metadata in all browsers.
            if scope["type"] == "http" and not has_fetch_metadata(scope["headers"]) and self._is_https(scope):
                return Finding.NO_BROWSER
        elif self._verify is not None:
            address = self._full_address(scope.get("client"), scope["headers"])
            return self._verify(operator, address.removesuffix("/128"))
        return Finding.UNKNOWN

    def _is_https(self, scope: Scope) -> bool:
        """As the server says; or, where a trusted proxy passes the request on, as X-Forwarded-Proto says."""
        if self._reads_address and self._address.is_trusted(scope.get("client")):
            schemes = [value for name, value in scope["headers"] if name == b"x-forwarded-proto"]
            if schemes:
                return all(scheme[:16].strip().lower() == b"https" for scheme in schemes)
        return scope.get("scheme") == "https"

    def _profile_of(self, place: int, agent: bytes) -> Profile:
        verdict = self._own_lists(agent) or self._classify(agent)
        standing = Standing.RULED
        if agent in self._banned_agents:
            standing = Standing.BANNED
        elif agent in self._exempt_agents:
            standing = Standing.EXEMPT
        is_exempt = agent in self._stack_exempt[place]
        rules = self._compiled(verdict.caller_class, place, standing, is_stack_exempt=is_exempt)
        if not verdict.caller_class.is_browser:
            claim = self._crawlers_claim(verdict.crawler, rules, place, standing, is_stack_exempt=is_exempt)
            return rules, rules, verdict.crawler, claim
        as_bot = self._compiled(CallerClass.ASSUMED_BOT, place, standing, is_stack_exempt=is_exempt)
        if not rules.limits.need_fetch_metadata or not is_modern_browser(agent):
            return rules, as_bot, None, None
        as_forger = self._compiled(
            CallerClass.ASSUMED_BOT, place, standing, is_stack_exempt=is_exempt, finding=Finding.NO_BROWSER
        )
        return rules, as_bot, None, Claim(None, {Finding.NO_BROWSER: as_forger})

    def _crawlers_claim(
        self, crawler: str | None, unknown: Rules, place: int, standing: Standing, *, is_stack_exempt: bool
    ) -> Claim | None:
        """What a crawler claims; None if it can't be checked, or need not be."""
        operator = None if self._verify is None else self._verify.operator_of(crawler)
        if operator is None or not unknown.limits.verify_crawlers:
            return None
        crawls = CallerClass.KNOWN_CRAWLER
        verified = self._compiled(crawls, place, standing, is_stack_exempt=is_stack_exempt, finding=Finding.VERIFIED)
        if standing is Standing.EXEMPT:  # by the name, which is not its own
            standing = Standing.RULED
        forged = self._compiled(crawls, place, standing, is_stack_exempt=False, finding=Finding.FORGED)
        return Claim(operator, {Finding.VERIFIED: verified, Finding.FORGED: forged})

    def _own_lists(self, agent: bytes) -> Agent | None:
        """The class that the operator's own lists give an agent."""
        for words, caller_class in self._own:
            if (word := words.first_in(agent)) is not None:
                crawler = word.decode("latin-1") if caller_class.is_known_crawler else None
                return Agent(caller_class, crawler, "own list")
        return None

    def _by_address(self, address: str, rules: Rules) -> Rules:
        """The rules, unless the operator's lists name the address; a ban wins."""
        packed = packed_address(address.partition("/")[0])
        if packed is not None:
            for networks, standing in (
                (self._banned_callers, Standing.BANNED),
                (self._exempt_callers, Standing.EXEMPT),
            ):
                if networks and packed in networks:
                    return self._compiled(rules.caller_class, 0, standing, is_stack_exempt=False)
        return rules

    def _place(self, scope: Scope) -> int:
        """The first of the path limits that fits, counted from 1; 0 for the rest of the site."""
        path, method = app_path(scope), scope.get("method", "GET")
        for place, (paths, methods) in enumerate(self._path_limits, 1):
            if path in paths and (methods is None or method in methods):
                return place
        return 0

    def _calls_web_api(self, scope: Scope) -> bool:
        return app_path(scope) in self._api_paths or (self._is_web_api is not None and self._is_web_api(scope))


class Profiles(dict[bytes, Profile]):
    """Profiles by agent, made when first asked for, and found again without a call.

    At most `MOST`: when they are as many, the older half goes.
    """

    MOST = 4096
    __hash__ = object.__hash__  # type: ignore[assignment]  # to be told when verdicts are forgotten

    def __init__(self, profile_of: Callable[[bytes], Profile]) -> None:
        super().__init__()
        self._profile_of = profile_of

    def __missing__(self, agent: bytes) -> Profile:
        profile = self._profile_of(agent)
        if len(self) >= self.MOST:
            for old in list(self)[: self.MOST // 2]:
                del self[old]
        self[agent] = profile
        return profile

    def cache_clear(self) -> None:
        self.clear()


class Words:
    """Parts of agents, in any case: asked whether an agent contains one."""

    __slots__ = ("_words",)

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(word.lower().encode("latin-1", "replace") for word in words)

    def __contains__(self, agent: bytes) -> bool:
        return self.first_in(agent) is not None

    def first_in(self, agent: bytes) -> bytes | None:
        """The first of them that the agent contains."""
        lowered = agent.lower()
        return next((word for word in self._words if word in lowered), None)
