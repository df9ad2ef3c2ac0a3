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

    __slots__ = ("count", "filed_at", "idle_since", "origin", "transport")

    def __init__(self, origin: Origin, transport: T) -> None:
        self.origin = origin
        self.transport = transport
        self.count = 0
        self.idle_since = 0.0
        self.filed_at: float | None = None  # as idle


class Pools(Generic[T]):
    """Safe under threads. Closing is left to the caller, since it may have to be awaited."""

    def __init__(
        self, make: Callable[[Origin], T], clock: Callable[[], float], *, idle_max: int, idle_seconds: float
    ) -> None:
        self._make = make
        self._clock = clock
        self._idle_max = idle_max
        self._idle_seconds = idle_seconds
        self._pools: dict[Origin, Pool[T]] = {}
        # The longest filed first. One that is taken stays until `surplus` comes to it: mostly it is idle again by then.
        self._idle: dict[Origin, Pool[T]] = {}
        self.surplus_from = float("inf")  # from when on there may be any
        self._lock = RLock()  # the collector of garbage may give an answer's connection back at any point in here

    def __len__(self) -> int:
        return len(self._pools)

    def take(self, origin: Origin) -> Pool[T]:
        with self._lock:
            pool = self._pools.get(origin)
            if pool is None:
                pool = self._pools[origin] = Pool(origin, self._make(origin))
            pool.count += 1
            return pool

    def give_back(self, pool: Pool[T]) -> None:
        with self._lock:
            pool.count -= 1
            pool.idle_since = self._clock()
            if not pool.count and pool.filed_at is None and self._pools.get(pool.origin) is pool:
                self._file(pool)

    def surplus(self, now: float) -> Iterator[T]:
        """Transports that are idle for too long, or too many; each is forgotten when it is given out."""
        while True:
            with self._lock:
                pool = next(iter(self._idle.values()), None)
                if pool is None:
                    self.surplus_from = float("inf")
                    return
                if pool.count or pool.idle_since != pool.filed_at:  # it has been taken since
                    del self._idle[pool.origin]
                    pool.filed_at = None
                    if not pool.count:
                        self._file(pool)
                    continue
                self.surplus_from = pool.idle_since + self._idle_seconds
                if len(self._idle) <= self._idle_max and now <= self.surplus_from:
                    return
                del self._idle[pool.origin], self._pools[pool.origin]
            yield pool.transport

    def _file(self, pool: Pool[T]) -> None:
        pool.filed_at = pool.idle_since
        if not self._idle:
            self.surplus_from = pool.idle_since + self._idle_seconds
        self._idle[pool.origin] = pool
        if len(self._idle) > self._idle_max:
            self.surplus_from = float("-inf")

    def all(self) -> Iterator[T]:
        """Every transport, each forgotten when it is given out; what is open in one will fail."""
        self._idle.clear()
        while self._pools:
            yield self._pools.popitem()[1].transport
