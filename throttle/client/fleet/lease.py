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


@dataclass(frozen=True, slots=True)
class Slots:
    """`open` of this worker's requests, `limit` of the fleet's; one takes so many `seconds`."""

    open: int
    limit: float
    seconds: float


@dataclass(slots=True)
class Lease:
    """`count` requests, one each `gap` seconds from `start`; each is void `late` seconds after it was due, or, where
    the slots held them back (`is_held`), with the turn.
    """

    start: float
    gap: float
    count: int
    late: float = LATE
    follows: bool = False
    """another worker's turn was before it, whose requests are still open"""
    is_held: bool = False
    is_used: bool = False
    began: float | None = None
    open_then: int = 0

    def take(self) -> None:
        self.count -= 1
        self.start += self.gap

    def stretch(self, now: float, factor: float) -> None:
        """What is still to come takes `factor` times as long."""
        if self.start > now:
            self.start = now + (self.start - now) * factor
        self.gap *= factor

    def expire(self, now: float) -> None:
        if self.is_held and self.is_used and self.start + self.count * self.gap <= now:
            self.count = 0
        while self.count and self.start + self.late <= now:
            self.take()

    def seconds_until_room(self, now: float, slots: Slots) -> float:
        """What this worker had open when its turn began it may have open, one more, and as many as will have ended
        since of the others', who had the rest.
        """
        if self.began is None:
            self.began, self.open_then = now, slots.open
        more = slots.open - self.open_then
        if not self.follows or more <= 0:
            return 0.0
        others = max(0.0, slots.limit - self.open_then)
        wait = self.began + slots.seconds * more / others - now if others else float("inf")
        if wait <= 1e-9:
            return 0.0
        if now + wait > self.start + self.gap:
            self.is_held = True
        return wait


class LeaseBucket:
    """Has a token when a lease says so. `wanted` is told when it has none, or soon will.

    On its own, `alone` decides: a bucket of this worker's.
    """

    def __init__(self, rate: float, wanted: Callable[[float], None], slots: Callable[[], Slots]) -> None:
        self.rate = rate
        self.capacity = 1.0
        self.catch_up = 0.0
        self.is_awaited = False  # a lease says itself how late it may be taken
        self.alone: TokenBucket | None = None
        self._wanted = wanted
        self._slots = slots
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
        lease = self._leases[0]
        wait = lease.start - now
        return wait if wait > 1e-9 else lease.seconds_until_room(now, self._slots())

    def hold(self) -> None:
        """As many are open as may be: what is left of this turn goes with it."""
        if self._leases and self._leases[0].began is not None:
            self._leases[0].is_held = True

    def take(self) -> None:
        if self.alone is not None:
            self.alone.take()
            return
        self._leases[0].take()
        self._leases[0].is_used = True

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
