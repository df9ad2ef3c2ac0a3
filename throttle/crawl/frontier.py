"""Which host is next: the delayed by time, the ready by longest remaining work.

Pure: it reads no clock and does no I/O. Rule 1: nothing is dispatched but with a place in its hand, so no task ever
waits for a host while another host has work. Rule 2: what cannot leave now is not looked at until it can.

A job takes at least as long as its longest host, URLs ÷ rate; so of the hosts that are ready, the one with the most
seconds of work left goes first, and one that is late at its turn loses time that nobody gives back. Each eighth pick
is instead whoever has been ready longest: however much work the others have, nobody starves.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from throttle.client.exchange import HostRests, HostStopped, Refused
from throttle.client.host import Host, Place
from throttle.client.in_flight import Waiter

Item = TypeVar("Item")

OLDEST_EACH = 8
# A lane's work is keyed when it gets ready; at its turn it goes back if less than this share is left.
REKEY_BELOW = 0.8
# With fewer items than this in memory, a lane asks for more of those that are stored.
LOW = 16


@dataclass(slots=True)
class Turn(Generic[Item]):
    """One item that may leave now, on `place`; or one that never will, and why."""

    host: Host
    item: Item
    place: Place | Refused


class Lane(Generic[Item]):
    """One host's queue: `items` are in memory, `stored` more can be loaded, `held` ones wait for something else."""

    __slots__ = ("held", "host", "is_loading", "is_ready", "items", "keyed_work", "stamp", "stored", "waiter")

    def __init__(self, host: Host, wake: Callable[["Lane[Item]"], None]) -> None:
        self.host = host
        self.items: deque[Item] = deque()
        self.stored = self.held = 0
        self.waiter = Waiter(lambda: wake(self))
        self.stamp = 0  # entries of the heaps with another stamp are void
        self.is_ready = False
        self.is_loading = False
        self.keyed_work = 0.0

    @property
    def remaining(self) -> int:
        return len(self.items) + self.stored + self.held

    def work(self) -> float:
        """Seconds until this host is done, at its rate."""
        rate = self.host.bucket.rate
        return self.remaining / rate if rate > 0 else float("inf")


class Frontier(Generic[Item]):
    """`on_wake` is called when a host that was told to wait may be asked again before the time it was told."""

    def __init__(self, on_wake: Callable[[], None] = lambda: None) -> None:
        self._on_wake = on_wake
        self._lanes: dict[Host, Lane[Item]] = {}
        self._ready: list[tuple[float, int, Lane[Item], int]] = []
        self._oldest: deque[tuple[Lane[Item], int]] = deque()
        self._delayed: list[tuple[float, int, Lane[Item], int]] = []
        self._later: list[tuple[float, int, Host, Item]] = []
        self._hungry: dict[Lane[Item], None] = {}
        self._sequence = 0  # breaks ties in the heaps
        self._picks = 0
        self._ready_count = 0

    def __len__(self) -> int:
        """Hosts that have work."""
        return len(self._lanes)

    @property
    def ready(self) -> int:
        """Hosts that may be asked now, as far as is known."""
        return self._ready_count

    @property
    def is_empty(self) -> bool:
        return not self._lanes and not self._later

    def lanes(self) -> Iterable[Lane[Item]]:
        return self._lanes.values()

    # -- in

    def add(self, host: Host, items: Iterable[Item], *, stored: int = 0, held: int = 0) -> None:
        """`stored` more wait outside, to be loaded when `take_hungry` names the host; `held` more will be added, or
        fewer when negative. Both count as the host's work."""
        lane = self._lanes.get(host) or self._new_lane(host)
        had = lane.remaining
        was_empty = not lane.items
        lane.items.extend(items)
        lane.stored += stored
        lane.held = max(0, lane.held + held)
        self._settle(lane)
        if lane.items and (was_empty or (lane.is_ready and lane.remaining > 2 * had)):
            self._make_ready(lane)

    def add_first(self, host: Host, item: Item) -> None:
        """Before all others of its host: what others wait for, or what has begun."""
        lane = self._lanes.get(host) or self._new_lane(host)
        lane.items.appendleft(item)
        if len(lane.items) == 1:
            self._make_ready(lane)

    def add_later(self, host: Host, item: Item, at: float) -> None:
        """First of its host, but not before `at`."""
        self._sequence += 1
        heappush(self._later, (at, self._sequence, host, item))

    def loaded(self, host: Host, items: Iterable[Item], *, taken: int, held: int = 0) -> None:
        """Of what was stored for a lane that `take_hungry` gave, `taken` were loaded; `items` of them may leave, `held`
        wait. Nothing taken means that nothing is left there."""
        lane = self._lanes.get(host)
        if lane is None:
            return  # dropped meanwhile
        lane.is_loading = False
        self.add(host, items, stored=-min(taken or lane.stored, lane.stored), held=held)

    def drop(self, host: Host) -> list[Item]:
        """Forget all items of a host; those that were in memory."""
        lane = self._lanes.pop(host, None)
        if lane is None:
            return []
        self._leave_heaps(lane)
        self._hungry.pop(lane, None)
        host.leave(lane.waiter)
        return list(lane.items)

    def take_hungry(self, at_most: int) -> list[Lane[Item]]:
        """Lanes that want some of what is stored for them; the caller answers each with `loaded`."""
        taken = list(self._hungry)[:at_most]
        for lane in taken:
            del self._hungry[lane]
            lane.is_loading = True
        return taken

    # -- out

    def pop(self, now: float) -> Turn[Item] | None:
        """The next item that may leave at `now`; None when none may. Call it with a free slot only."""
        self._let_in_what_is_due(now)
        while (lane := self._best()) is not None:
            host = lane.host
            place = refusal(host, now) or host.ask(lane.waiter, now)
            if isinstance(place, float):
                self._leave_heaps(lane)
                if place != float("inf"):
                    self._delay(lane, now + place)
                continue
            item = lane.items.popleft()
            self._leave_heaps(lane)
            if lane.items:
                wait = host.bucket.seconds_until_token(now)
                if isinstance(place, Refused) or wait == 0.0:
                    self._make_ready(lane)
                else:  # no use in asking before, and nothing but the bucket's rate could shorten this
                    self._delay(lane, now + wait)
            self._settle(lane)
            return Turn(host, item, place)
        return None

    def next_time(self) -> float | None:
        """When `pop` is worth calling again, if nothing wakes it before; None: only then."""
        while self._delayed and self._delayed[0][3] != self._delayed[0][2].stamp:
            heappop(self._delayed)
        times = [heap[0][0] for heap in (self._delayed, self._later) if heap]
        return min(times, default=None)

    # -- inside

    def _new_lane(self, host: Host) -> Lane[Item]:
        lane = self._lanes[host] = Lane(host, self._woken)
        return lane

    def _woken(self, lane: Lane[Item]) -> None:
        if lane.items and not lane.is_ready:
            self._make_ready(lane)
            self._on_wake()

    def _let_in_what_is_due(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, _, host, item = heappop(self._later)
            self.add_first(host, item)
        delayed = self._delayed
        while delayed and delayed[0][0] <= now:
            _, _, lane, stamp = heappop(delayed)
            if stamp == lane.stamp:
                self._make_ready(lane)

    def _best(self) -> Lane[Item] | None:
        self._picks += 1
        if self._picks % OLDEST_EACH == 0:
            while self._oldest:
                lane, stamp = self._oldest.popleft()
                if stamp == lane.stamp:
                    return lane
        while self._ready:
            _, _, lane, stamp = heappop(self._ready)
            if stamp != lane.stamp:
                continue
            if self._ready and lane.work() < REKEY_BELOW * lane.keyed_work:
                self._make_ready(lane)  # its rate was learned meanwhile, or its work done
                continue
            return lane
        return None

    def _make_ready(self, lane: Lane[Item]) -> None:
        self._leave_heaps(lane)
        lane.is_ready = True
        self._ready_count += 1
        lane.keyed_work = lane.work()
        self._sequence += 1
        heappush(self._ready, (-lane.keyed_work, self._sequence, lane, lane.stamp))
        self._oldest.append((lane, lane.stamp))
        if len(self._oldest) > 4 * self._ready_count + 1024:
            self._sweep()

    def _delay(self, lane: Lane[Item], at: float) -> None:
        self._sequence += 1
        heappush(self._delayed, (at, self._sequence, lane, lane.stamp))

    def _leave_heaps(self, lane: Lane[Item]) -> None:
        lane.stamp += 1
        if lane.is_ready:
            lane.is_ready = False
            self._ready_count -= 1

    def _sweep(self) -> None:
        """Void entries go, once they are three of four: a flat cost for each."""
        self._oldest = deque(entry for entry in self._oldest if entry[1] == entry[0].stamp)
        self._ready = [entry for entry in self._ready if entry[3] == entry[2].stamp]
        heapify(self._ready)

    def _settle(self, lane: Lane[Item]) -> None:
        """Ask for more, or be forgotten."""
        if lane.stored and len(lane.items) + lane.held <= LOW:
            if not lane.is_loading:
                self._hungry[lane] = None
        else:
            self._hungry.pop(lane, None)
            if not lane.remaining:
                self._lanes.pop(lane.host, None)
                lane.host.leave(lane.waiter)


def refusal(host: Host, now: float) -> Refused | None:
    """Why nothing more is sent to a host: it blocks, or asks for a longer rest than may be waited for."""
    if host.stopped is not None:
        return HostStopped(host.name, host.stopped)
    rest = host.rest_left(now)
    return HostRests(host.name, rest) if rest > host.politeness.wait_max else None
