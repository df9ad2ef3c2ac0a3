"""robots.txt as RFC 9309 has it, with the widely used Crawl-delay and Request-rate.

What may be fetched follows from how reading it ended (2.3.1): a text is obeyed; 4xx means there is none, and all is
allowed; 5xx or no answer means nothing is allowed, until it has been so for thirty days. 429 counts among the
latter, as Google reads it: a host that is overloaded has not said yes. What was read is kept for a day (2.4).
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

DAY = 86_400.0
UNREACHABLE_FOR = 30 * DAY
LENGTH_MAX = 512 * 1024
"""bytes that are parsed; 2.5 asks for 500 KiB at least"""
REDIRECTS_MAX = 5
# A server that failed a moment ago may not fail in ten minutes; a day's silence for that would be too long.
ASK_AGAIN = 600.0


class NoContactError(ValueError):
    """A crawl must say whom to write to."""

    def __init__(self, given: str | None) -> None:
        told = f"{given!r} is neither" if given else "it is missing"
        super().__init__(
            "a crawl says in its User-Agent whom a site's owner can write to:"
            f" give contact= (--contact) an e-mail address or a URL; {told}"
        )


def user_agent(contact: str | None, name: str = "throttle-crawl") -> str:
    """The one place where a crawl's User-Agent is made. Raises NoContactError."""
    contact = (contact or "").strip()
    is_address = "@" in contact and "." in contact.rpartition("@")[2]
    is_url = contact.startswith(("http://", "https://")) and len(contact) > len("https://")
    if not (is_address or is_url) or not contact.isascii() or not contact.isprintable() or set(contact) & set(" ()<>;"):
        raise NoContactError(contact)
    return f"{name}/{version('asgi-throttle')} (+{contact})"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one origin allows. Ask `is_allowed(url)`; `interval` is seconds between two requests, or 0."""

    interval: float = 0.0
    unreachable: str = ""
    """why nothing is allowed though nothing was read"""
    sitemaps: tuple[str, ...] = ()
    _parsed: Any = None
    _agent: str = ""

    def is_allowed(self, url: str) -> bool:
        if self.unreachable:
            return False
        return self._parsed is None or bool(self._parsed.can_fetch(url, self._agent))


ALL_ALLOWED = Rules()


def rules(status: int | None, text: bytes, agent: str) -> Rules:
    """What follows from an answer to the request for robots.txt; None: there was no answer, or no end of it."""
    if status is None:
        return Rules(unreachable="robots.txt did not answer")
    if status >= 500 or status == 429:
        return Rules(unreachable=f"robots.txt answered {status}")
    if not 200 <= status < 300:
        return ALL_ALLOWED  # 4xx, and redirects beyond the fifth
    return _parsed(text[:LENGTH_MAX], agent)


@lru_cache(maxsize=256)  # many subdomains have one and the same
def _parsed(text: bytes, agent: str) -> Rules:
    from protego import Protego

    # A line cut through at the limit, and what is no UTF-8, is no rule.
    parsed = Protego.parse(text.decode("utf-8-sig", errors="replace").replace("\x00", ""))
    delay = parsed.crawl_delay(agent) or 0.0
    rate = parsed.request_rate(agent)
    # Its hours are left out: polite by night is polite.
    between = rate.seconds / rate.requests if rate is not None and rate.requests > 0 else 0.0
    interval = max(0.0, float(delay), float(between))
    return Rules(interval, "", tuple(parsed.sitemaps)[:100], parsed, agent)


def is_fresh(read_at: float, status: int, now: float) -> bool:
    """Whether what was read at `read_at` still stands; both are seconds since 1970. A clock that went back: no."""
    return 0 <= now - read_at < (ASK_AGAIN if status >= 500 or status in (0, 429) else DAY)


@dataclass(slots=True)
class Memory:
    """What is remembered of one origin's robots.txt: the last text that was read, and since when it fails."""

    read_at: float
    status: int
    text: bytes = b""
    failing_since: float | None = None

    def heard(self, now: float, status: int | None, text: bytes) -> "Memory":
        """After one more request."""
        if status is None or status >= 500 or status == 429:
            since = now if self.failing_since is None else self.failing_since
            return Memory(now, status or 0, self.text, since)
        return Memory(now, status, text)

    def rules(self, agent: str) -> Rules:
        if self.failing_since is None:
            return rules(self.status or None, self.text, agent)
        if self.read_at - self.failing_since >= UNREACHABLE_FOR:
            return _parsed(self.text[:LENGTH_MAX], agent)  # an old copy, or none: all is allowed
        return rules(self.status or None, b"", agent)
