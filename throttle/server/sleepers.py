"""Who waits for room, and who wakes first.

The order is a class's rank, then arrival, among those for whom there is room. A sleeper that was woken keeps a place
reserved until it asks or leaves, so that nobody who comes later takes it. Nothing here reads a clock.
"""

import asyncio
from collections.abc import Iterator
from enum import Enum

from throttle.server.rule import Part


class Woken(Enum):
    """Why a sleeper's wait ended."""

    ROOM = "room"
    CLOSING = "closing"


class Sleeper:
    """One request that waits for room; `woken` resolves when there is some."""

    __slots__ = ("at_most", "key", "order", "part", "woken")

    def __init__(self, order: tuple[int, int], at_most: int, key: int | None = None) -> None:
        self.order = order
        self.key = key
        """whose sleepers are counted together with it; None where nobody asks"""
        self.at_most = at_most
        """the load at which there is room for it, itself included"""
        self.part: Part | None = None
        """`at_most` as a part of a limit that moves; set by who moves it"""
        self.woken: asyncio.Future[Woken] = asyncio.get_running_loop().create_future()

    def __lt__(self, other: "Sleeper") -> bool:
        return self.order < other.order


class Sleepers:
    """The sleepers of one process, first to wake first."""

    def __init__(self) -> None:
        self._arrivals = 0
        self.waiting: list[Sleeper] = []
        self.called: set[Sleeper] = set()
        """woken with a place reserved, yet to ask"""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.called)

    def __iter__(self) -> Iterator[Sleeper]:
        yield from self.waiting
        yield from self.called

    def of(self, key: int) -> int:
        """How many sleep under this key. (Counted one by one: they are few, and who asks is about to sleep.)"""
        return sum(sleeper.key == key for sleeper in self)

    def add(self, rank: int, at_most: int, key: int | None = None, arrival: int | None = None) -> Sleeper:
        """One more, behind all of its rank, unless its `arrival` was numbered elsewhere."""
        arrival = self._arrivals + 1 if arrival is None else arrival
        self._arrivals = max(self._arrivals, arrival)
        sleeper = Sleeper((rank, arrival), at_most, key)
        self.waiting.append(sleeper)
        return sleeper

    def sleep_on(self, sleeper: Sleeper) -> None:
        """Back to its old place in the order: the room was gone when it asked."""
        self.called.discard(sleeper)
        if sleeper.woken.done():
            sleeper.woken = asyncio.get_running_loop().create_future()
        if sleeper not in self.waiting:
            self.waiting.append(sleeper)

    def remove(self, sleeper: Sleeper) -> None:
        """It asks no more. Does nothing for one that has left already."""
        self.called.discard(sleeper)
        if sleeper in self.waiting:
            self.waiting.remove(sleeper)

    def call(self, running: int) -> None:
        """Wake those for whom there is room while `running` requests run, each with a place reserved."""
        while (sleeper := self._first_with_room(running + len(self.called))) is not None:
            self.call_one(sleeper)

    def call_one(self, sleeper: Sleeper) -> None:
        """Wake this one, with a place reserved. Does nothing for one that does not wait."""
        if sleeper in self.waiting:
            self.waiting.remove(sleeper)
            self.called.add(sleeper)
            if not sleeper.woken.done():
                sleeper.woken.set_result(Woken.ROOM)

    def _first_with_room(self, load: int) -> Sleeper | None:
        """Places of a site may have limits of their own, so the first of all may have to let others pass."""
        return min((sleeper for sleeper in self.waiting if load < sleeper.at_most), default=None)

    def close(self) -> None:
        for sleeper in list(self):
            if not sleeper.woken.done():
                sleeper.woken.set_result(Woken.CLOSING)
