"""How many requests may be open at once, and who is next: first come, first served."""

from collections.abc import Callable


class Waiter:
    """One request in the queue. `wake` is called, at most once a turn, when it should ask again."""

    __slots__ = ("wake",)

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake


class InFlightLimit:
    """`count` requests are open, at most `limit` may be; the rest wait in the order in which they came.

    Only the first waiter may take a slot, so nobody barges in and only one timer runs for a host. Whoever leaves
    the front, served or cancelled, wakes the next: a wake-up cannot be lost with the waiter that got it.
    """

    __slots__ = ("count", "limit", "waiters")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.count = 0
        self.waiters: dict[Waiter, None] = {}  # a queue from whose middle one leaves in O(1)

    @property
    def waiting(self) -> int:
        return len(self.waiters)

    def is_full(self) -> bool:
        return self.count >= int(self.limit)

    def is_next(self, waiter: Waiter | None) -> bool:
        """True for the first in the queue, and for a newcomer when nobody waits."""
        for first in self.waiters:
            return first is waiter
        return True

    def join(self, waiter: Waiter) -> None:
        """At the end of the queue; one who is in it already keeps the place."""
        self.waiters.setdefault(waiter)

    def leave(self, waiter: Waiter) -> None:
        """Out of the queue without a slot: cancelled, or given up."""
        if waiter in self.waiters:
            was_next = self.is_next(waiter)
            del self.waiters[waiter]
            if was_next:
                self.wake_next()

    def take(self, waiter: Waiter | None) -> None:
        """The slot is taken; the next in the queue may look for itself."""
        self.count += 1
        if self.waiters:
            if waiter is not None:
                self.waiters.pop(waiter, None)
            self.wake_next()

    def release(self) -> None:
        if self.count <= 0:
            raise RuntimeError("a slot was released that nobody held")
        self.count -= 1
        if self.waiters:
            self.wake_next()

    def wake_next(self) -> None:
        for first in self.waiters:
            first.wake()
            return
