"""A pool of connections per origin, made when first asked, closed when idle for long or when too many are idle.

One pool for all hosts looks through all its connections and waiters for each request; a pool per origin has few.
A slot is taken before a pool is, so a pool never makes anybody wait.
"""

from collections.abc import Callable, Iterator
from threading import RLock
from typing import Generic, TypeVar

T = TypeVar("T")
Origin = tuple[str, bytes]
"""scheme and authority"""


class Pool(Generic[T]):
    """`transport` is the client's own, for one origin; `count` requests are open in it."""

    __slots__ = ("count", "idle_since", "origin", "transport")

    def __init__(self, origin: Origin, transport: T) -> None:
        self.origin = origin
        self.transport = transport
        self.count = 0
        self.idle_since = 0.0


class Pools(Generic[T]):
    """Safe under threads. Closing is left to the caller, since it may have to be awaited."""

    def __init__(self, make: Callable[[Origin], T], *, idle_max: int, idle_seconds: float) -> None:
        self._make = make
        self._idle_max = idle_max
        self._idle_seconds = idle_seconds
        self._busy: dict[Origin, Pool[T]] = {}
        self._idle: dict[Origin, Pool[T]] = {}  # the longest idle first
        self._idle_until = float("-inf")  # nothing is idle for too long before
        self._lock = RLock()  # the collector of garbage may give an answer's connection back at any point in here

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def take(self, origin: Origin) -> Pool[T]:
        with self._lock:
            pool = self._busy.get(origin) or self._idle.get(origin) or Pool(origin, self._make(origin))
            pool.count += 1
            self._busy[origin] = pool
            self._idle.pop(origin, None)
            return pool

    def give_back(self, pool: Pool[T], now: float) -> None:
        with self._lock:
            pool.count -= 1
            if not pool.count and self._busy.pop(pool.origin, None) is not None:
                pool.idle_since = now
                self._idle[pool.origin] = pool

    def has_surplus(self, now: float) -> bool:
        """Whether any is idle for too long, or too many are."""
        return bool(self._idle) and (len(self._idle) > self._idle_max or now > self._idle_until)

    def surplus(self, now: float) -> Iterator[T]:
        """Transports that are idle for too long, or too many; each is forgotten when it is given out."""
        while True:
            with self._lock:
                pool = next(iter(self._idle.values()), None)
                if pool is not None:
                    self._idle_until = pool.idle_since + self._idle_seconds
                if pool is None or not self.has_surplus(now):
                    return
                del self._idle[pool.origin]
            yield pool.transport

    def all(self) -> Iterator[T]:
        """Every transport, each forgotten when it is given out; what is open in it will fail."""
        for pools in (self._idle, self._busy):
            while pools:
                yield pools.popitem()[1].transport
