"""The caller's half: a client that throttles itself.

`AsyncThrottledTransport` and `ThrottledTransport` are for httpx; `throttle.client.httpx2` has those for httpx2.
"""

from typing import TYPE_CHECKING, Any

from throttle.client.backoff import Backoff
from throttle.client.events import Event
from throttle.client.exchange import HostRests, HostStopped, Refused, WaitedTooLong
from throttle.client.host import HostStats, Politeness
from throttle.client.hosts import Hosts
from throttle.client.settings import Rates

if TYPE_CHECKING:
    from throttle.client.httpx import AsyncThrottledTransport as AsyncThrottledTransport
    from throttle.client.httpx import ThrottledTransport as ThrottledTransport

__all__ = [
    "Backoff",
    "Event",
    "HostRests",
    "HostStats",
    "HostStopped",
    "Hosts",
    "Politeness",
    "Rates",
    "Refused",
    "WaitedTooLong",
]


def __getattr__(name: str) -> Any:
    """The transports, only for those who ask for them: httpx takes 100 ms to load, and may be missing."""
    if name in ("AsyncThrottledTransport", "ThrottledTransport"):
        from throttle.client import httpx

        return getattr(httpx, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
