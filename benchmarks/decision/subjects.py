"""The bare site, and the same site behind each middleware, all on one clock.

Every subject keeps the same limit, ten hits in fifteen seconds for a caller, so that all of them hold a caller's real
history. The peers read the clock through their modules' `time`, which is replaced by the benchmark's: a person's pace
takes no real seconds. The three engines stand behind a gate as thin as can be (no Retry-After, no header, no class),
which flatters them; their keys are the bare address.
"""

import functools
import itertools
import operator
import types
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from throttle import Limits, MemoryStore, ThrottleMiddleware

HITS, SECONDS = 10, 15

App = Callable[[Any, Any, Any], Awaitable[None]]


class Clock:
    """Seconds that stand still unless told; `read` costs what `time.monotonic` does (a call into C, no frame)."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._cell = [start]
        self.read: Callable[[], float] = functools.partial(operator.getitem, self._cell, 0)

    @property
    def now(self) -> float:
        return self._cell[0]

    def set(self, seconds: float) -> None:
        self._cell[0] = seconds

    def pass_by(self, seconds: float) -> None:
        self._cell[0] += seconds


@dataclass(frozen=True)
class Subject:
    """A name, and how to put a fresh instance on a clock."""

    name: str
    make: Callable[[Clock], Starlette]
    is_peer: bool = False
    is_floor: bool = False
    has_threads: bool = False
    """sweeps in threads, which must not run in another's time"""


async def paper(request: Request) -> Response:
    return PlainTextResponse("Load Control in Connotea")


def site() -> Starlette:
    return Starlette(routes=[Route("/", paper), Route("/paper", paper)])


def bare(clock: Clock) -> Starlette:
    return site()


# Floors


class Nothing:
    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


class SendWrapped:
    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        def wrapped(message: Any) -> Any:
            return send(message)

        await self.app(scope, receive, wrapped)


def behind(middleware: Any, **options: Any) -> Starlette:
    app = site()
    app.add_middleware(middleware, **options)
    return app


def throttle(clock: Clock, *, fields: bool = False, store: MemoryStore | None = None) -> Starlette:
    store = MemoryStore() if store is None else store
    return behind(ThrottleMiddleware, store=store, clock=clock.read, rate_limit_fields=fields)


def throttle_that_measures(clock: Clock) -> Starlette:
    """With `load_max="auto"`: each look at the clock finds it a bit later, or no request would have lasted."""
    looks = itertools.count()
    options = {"limits": Limits(load_max="auto"), "rate_limit_fields": False}
    return behind(ThrottleMiddleware, clock=lambda: clock.read() + next(looks) * 1e-5, **options)


# Peers; imported when asked for, since they live in another environment


class Gate:
    """The thinnest middleware an engine can stand behind."""

    def __init__(self, app: App, is_served: Callable[[str], bool]) -> None:
        self.app = app
        self.is_served = is_served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self.is_served(scope["client"][0]):
            await send({"type": "http.response.start", "status": 429, "headers": [(b"content-length", b"0")]})
            return await send({"type": "http.response.body", "body": b""})
        return await self.app(scope, receive, send)


def _set_clock(clock: Clock, *modules: Any) -> None:
    for module in modules:
        module.time = types.SimpleNamespace(time=clock.read, monotonic=clock.read)


def limits_moving_window(clock: Clock) -> Starlette:
    import limits
    from limits.storage import memory

    _set_clock(clock, memory)
    hit = limits.strategies.MovingWindowRateLimiter(memory.MemoryStorage()).hit
    limit = limits.RateLimitItemPerSecond(HITS, SECONDS)
    return behind(Gate, is_served=lambda address: hit(limit, address))


def throttled_py(clock: Clock, *, max_size: int = 2_000_000) -> Starlette:
    from datetime import timedelta

    import throttled

    _set_clock(clock, throttled.utils)
    limiter = throttled.Throttled(
        using=throttled.RateLimiterType.SLIDING_WINDOW.value,
        quota=throttled.per_duration(timedelta(seconds=SECONDS), limit=HITS),
        store=throttled.MemoryStore(options={"MAX_SIZE": max_size}),
    )
    return behind(Gate, is_served=lambda address: not limiter.limit(address).limited)


def pyrate_limiter(clock: Clock) -> Starlette:
    import pyrate_limiter as pyrate

    class Ticks(pyrate.AbstractClock):
        def now(self) -> int:
            return int(clock.read() * 1000)

    class Bucket(pyrate.InMemoryBucket):
        _clock = Ticks()

    class PerCaller(pyrate.BucketFactory):
        """A bucket a caller; the package leaves this factory to its user."""

        def __init__(self) -> None:
            self.rates = [pyrate.Rate(HITS, SECONDS * 1000)]
            self.of: dict[str, pyrate.InMemoryBucket] = {}

        def wrap_item(self, name: str, weight: int = 1) -> Any:
            return pyrate.RateItem(name, int(clock.read() * 1000), weight=weight)

        def get(self, item: Any) -> pyrate.InMemoryBucket:
            bucket = self.of.get(item.name)
            if bucket is None:
                bucket = self.of[item.name] = Bucket(self.rates)
            return bucket

    acquire = pyrate.Limiter(PerCaller()).try_acquire
    return behind(Gate, is_served=lambda address: acquire(address, blocking=False))


def slowapi(clock: Clock, *, middleware: str) -> Starlette:
    import limits.storage.memory
    import slowapi
    import slowapi.extension
    import slowapi.middleware
    from slowapi.util import get_remote_address

    _set_clock(clock, limits.storage.memory, slowapi.extension)
    app = behind(getattr(slowapi.middleware, middleware))
    app.state.limiter = slowapi.Limiter(
        key_func=get_remote_address, default_limits=[f"{HITS} per {SECONDS} second"], strategy="moving-window"
    )
    return app


BARE = Subject("bare Starlette", bare)
FLOORS = [
    Subject("middleware that does nothing", lambda clock: behind(Nothing), is_floor=True),
    Subject("middleware that wraps send", lambda clock: behind(SendWrapped), is_floor=True),
]
OFF = Subject("throttle, RateLimit fields off", throttle)
ON = Subject("throttle, RateLimit fields on", functools.partial(throttle, fields=True))
AUTO = Subject('throttle, load_max="auto", fields off', throttle_that_measures)
PEERS = [
    Subject("throttled-py, sliding window, thin gate", throttled_py, is_peer=True),
    Subject("pyrate-limiter, thin gate", pyrate_limiter, is_peer=True),
    Subject("limits, moving window, thin gate", limits_moving_window, is_peer=True, has_threads=True),
    Subject(
        "slowapi, ASGI middleware",
        functools.partial(slowapi, middleware="SlowAPIASGIMiddleware"),
        is_peer=True,
        has_threads=True,
    ),
    Subject(
        "slowapi, default middleware",
        functools.partial(slowapi, middleware="SlowAPIMiddleware"),
        is_peer=True,
        has_threads=True,
    ),
]
