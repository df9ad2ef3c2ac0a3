"""What a request needs of a site: processors that all share, or the event loop; places in a database; time."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from benchmarks.simulator.clockwork import Clockwork

Done = Callable[[], None]


class Processors:
    """`cores` processors, shared equally among all who work (processor sharing); `cores` may change."""

    def __init__(self, clockwork: Clockwork, cores: float) -> None:
        self._clockwork = clockwork
        self.cores = cores
        self._served = 0.0
        """seconds of work that each has been given since the start"""
        self._at = 0.0
        self._working: list[tuple[float, int, Done]] = []
        self._entered = 0
        self._version = 0

    def use(self, seconds: float, done: Done) -> None:
        self._pass()
        self._entered += 1
        heappush(self._working, (self._served + seconds, self._entered, done))
        self._plan()

    def become(self, cores: float) -> None:
        self._pass()
        self.cores = cores
        self._plan()

    def _pace(self) -> float:
        return min(1.0, self.cores / len(self._working))

    def _pass(self) -> None:
        now = self._clockwork.now
        if self._working:
            self._served += (now - self._at) * self._pace()
        self._at = now

    def _plan(self) -> None:
        self._version += 1
        if self._working:
            left = max(self._working[0][0] - self._served, 0.0)
            self._clockwork.after(left / self._pace(), self._finish, self._version)

    def _finish(self, version: int) -> None:
        if version != self._version:
            return
        self._pass()
        ended: list[Done] = []
        while self._working and self._working[0][0] <= self._served + 1e-9:
            ended.append(heappop(self._working)[2])
        self._plan()
        for done in ended:
            done()


class Loop:
    """An event loop: what is to be run runs to its end, one after another, first come, first served."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self._ready: deque[tuple[float, Done]] = deque()
        self._is_running = False

    def soon(self, done: Done, seconds: float = 0.0) -> None:
        self._ready.append((seconds, done))
        self._run()

    def go_on(self, seconds: float, done: Done) -> None:
        """What runs now computes on, before anything else runs."""
        self._ready.appendleft((seconds, done))

    def _run(self) -> None:
        if self._ready and not self._is_running:
            self._is_running = True
            seconds, done = self._ready.popleft()
            self._clockwork.after(seconds, self._end, done)

    def _end(self, done: Done) -> None:
        done()
        self._is_running = False
        self._run()


class Places:
    """At most `places` at once, first come, first served: a pool of connections, or of threads."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._free = places
        self._waiting: deque[Done] = deque()

    @property
    def free(self) -> int:
        return self._free

    def take(self, begun: Done) -> None:
        if self._free:
            self._free -= 1
            begun()
        else:
            self._waiting.append(begun)

    def give_back(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1
