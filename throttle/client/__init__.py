"""The caller's half: a client that throttles itself.

`AsyncThrottledTransport` and `ThrottledTransport` are for httpx; `throttle.client.httpx2` has those for httpx2,
`throttle.client.aiohttp` a middleware. `throttled()` is for any other client that awaits.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from throttle.client.backoff import Backoff
from throttle.client.events import Event
from throttle.client.exchange import HostRests, HostStopped, Refused, WaitedTooLong
from throttle.client.host import HostStats, Politeness
from throttle.client.hosts import Hosts
from throttle.client.settings import Rates, polite_hosts

if TYPE_CHECKING:
    from throttle.client.any_client import throttled
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
    "polite_hosts",
    "throttled",
]


_MODULES = {"AsyncThrottledTransport": "httpx", "ThrottledTransport": "httpx", "throttled": "any_client"}


def __getattr__(name: str) -> Any:
    """What sends, only for those who ask for it: httpx takes 100 ms to load and may be missing, asyncio 30."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"throttle.client.{_MODULES[name]}"), name)
