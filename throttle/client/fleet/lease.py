"""The leases that a worker holds, in a token bucket's place."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from throttle.client.token_bucket import TokenBucket

LATE = 1.0
"""seconds for which a request that was due may still leave: so in any W seconds all workers together send no more than
rate × (W + LATE) + 1, whatever they hold"""
SOON = 0.01
"""a lease that is spent within so many seconds calls for the next"""


@dataclass(slots=True)
class Lease:
    """`count` requests, one each `gap` seconds from `start`; each is void `late` seconds after it was due."""

    start: float
    gap: float
    count: int
    late: float = LATE

    def take(self) -> None:
        self.count -= 1
        self.start += self.gap

    def stretch(self, now: float, factor: float) -> None:
        """What is still to come takes `factor` times as long."""
        if self.start > now:
            self.start = now + (self.start - now) * factor
        self.gap *= factor

    def expire(self, now: float) -> None:
        while self.count and self.start + self.late <= now:
            self.take()


class LeaseBucket:
    """Has a token when a lease says so. `wanted` is told when it has none, or soon will.

    On its own, `alone` decides: a bucket of this worker's.
    """

    def __init__(self, rate: float, wanted: Callable[[float], None]) -> None:
        self.rate = rate
        self.capacity = 1.0
        self.catch_up = 0.0
        self.is_awaited = False  # a lease says itself how late it may be taken
        self.alone: TokenBucket | None = None
        self._wanted = wanted
        self._leases: deque[Lease] = deque()

    def grant(self, lease: Lease) -> None:
        self._leases.append(lease)

    def stretch(self, now: float, factor: float) -> None:
        for lease in self._leases:
            lease.stretch(now, factor)

    def be_alone(self, rate: float, now: float) -> None:
        """From an empty bucket: what was leased may just have been sent."""
        self.rate = rate
        self.alone = TokenBucket(rate, self.capacity, now)
        self.alone.drain(now)

    def left(self, now: float) -> int:
        """Requests that may still leave."""
        while self._leases:
            self._leases[0].expire(now)
            if self._leases[0].count:
                break
            self._leases.popleft()
        return sum(lease.count for lease in self._leases)

    def is_soon_spent(self, now: float) -> bool:
        if not self.left(now):
            return True
        last = self._leases[-1]
        return last.start + (last.count - 1) * last.gap <= now + SOON

    def seconds_until_token(self, now: float) -> float:
        """Infinity: until a lease comes, which wakes the queue."""
        if self.alone is not None:
            return self.alone.seconds_until_token(now)
        if not self.left(now):
            self._wanted(now)
            if not self.left(now):
                return float("inf")
        wait = self._leases[0].start - now
        return wait if wait > 1e-9 else 0.0

    def take(self) -> None:
        if self.alone is not None:
            self.alone.take()
            return
        self._leases[0].take()

    def give_back(self) -> None:
        """A turn that was leased passes unused: to send two in the next would break the fleet's order."""
        if self.alone is not None:
            self.alone.give_back()

    def change(self, rate: float, capacity: float, now: float, catch_up: float = 0.0) -> None:
        self.rate = rate
        self.capacity = capacity
        self.catch_up = catch_up
        if self.alone is not None:
            self.alone.change(rate, capacity, now, catch_up)

    def drain(self, now: float) -> None:
        """After a drop no lease counts any more."""
        self._leases.clear()
        if self.alone is not None:
            self.alone.drain(now)
