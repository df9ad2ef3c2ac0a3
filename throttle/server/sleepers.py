"""Who waits for room, and who wakes first.

The order is a class's rank, then arrival. A sleeper that was woken keeps a place reserved until it asks or leaves, so
that nobody who comes later takes it. Nothing here reads a clock.
"""

import asyncio
import heapq
from collections.abc import Iterator
from enum import Enum


class Woken(Enum):
    """Why a sleeper's wait ended."""

    ROOM = "room"
    CLOSING = "closing"


class Sleeper:
    """One request that waits for room; `woken` resolves when there is some."""

    __slots__ = ("at_most", "is_called", "order", "woken")

    def __init__(self, order: tuple[int, int], at_most: int) -> None:
        self.order = order
        self.at_most = at_most
        """the load at which there is room for it, itself included"""
        self.woken: asyncio.Future[Woken] = asyncio.get_running_loop().create_future()
        self.is_called = False
        """a place is reserved for it"""

    def __lt__(self, other: "Sleeper") -> bool:
        return self.order < other.order


class Sleepers:
    """The sleepers of one process, first to wake first."""

    def __init__(self) -> None:
        self._arrivals = 0
        self.waiting: list[Sleeper] = []
        """a heap"""
        self.called: set[Sleeper] = set()
        """woken with a place reserved, yet to ask"""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.called)

    def __iter__(self) -> Iterator[Sleeper]:
        yield from self.waiting
        yield from self.called

    def add(self, rank: int, at_most: int, arrival: int | None = None) -> Sleeper:
        """One more, behind all of its rank, unless its `arrival` was numbered elsewhere."""
        arrival = self._arrivals + 1 if arrival is None else arrival
        self._arrivals = max(self._arrivals, arrival)
        sleeper = Sleeper((rank, arrival), at_most)
        heapq.heappush(self.waiting, sleeper)
        return sleeper

    def sleep_on(self, sleeper: Sleeper) -> None:
        """Back to its old place in the order: the room was gone when it asked."""
        self.called.discard(sleeper)
        sleeper.is_called = False
        if sleeper.woken.done():
            sleeper.woken = asyncio.get_running_loop().create_future()
        if sleeper not in self.waiting:
            heapq.heappush(self.waiting, sleeper)

    def remove(self, sleeper: Sleeper) -> None:
        """It asks no more. Does nothing for one that has left already."""
        self.called.discard(sleeper)
        sleeper.is_called = False
        if sleeper in self.waiting:
            self.waiting.remove(sleeper)
            heapq.heapify(self.waiting)

    def call(self, running: int) -> None:
        """Wake those for whom there is room while `running` requests run, each with a place reserved."""
        while self.waiting and running + len(self.called) < self.waiting[0].at_most:
            self.call_one(self.waiting[0])

    def call_one(self, sleeper: Sleeper) -> None:
        """Wake this one, with a place reserved. Does nothing for one that does not wait."""
        if sleeper not in self.waiting:
            return
        if sleeper is self.waiting[0]:
            heapq.heappop(self.waiting)
        else:
            self.waiting.remove(sleeper)
            heapq.heapify(self.waiting)
        sleeper.is_called = True
        self.called.add(sleeper)
        if not sleeper.woken.done():
            sleeper.woken.set_result(Woken.ROOM)

    def close(self) -> None:
        for sleeper in list(self):
            if not sleeper.woken.done():
                sleeper.woken.set_result(Woken.CLOSING)
