"""Other people's ways to find a limit, each rewritten in a few lines from its source, with its defaults.

They are asked for the same number, under our rule that people always pass. None of them knows kinds of requests.
"""

from math import log10, sqrt
from random import Random

WINDOW = 1_000_000
"""microseconds"""


class Windowed:
    """Tells `update` of each window of a second and at least ten requests: their mean latency, in seconds."""

    def __init__(self, load_max: int) -> None:
        self.load_max = load_max
        self.limit = float(load_max)
        self.was_full = False
        self._running = self._most_running = 0
        self._began = 0
        self._latencies: list[float] = []

    def arrived(self, now: int) -> bool:
        return False

    def began(self, now: int) -> int:
        self._running += 1
        self._most_running = max(self._most_running, self._running)
        return now

    def ended(self, kind: tuple[object, object], began: int, now: int) -> bool:
        self._running -= 1
        self._latencies.append((now - began) / 1e6)
        if now - self._began < WINDOW or len(self._latencies) < 10:
            return False
        self.update(self._latencies, self._most_running)
        self._began, self._latencies, self._most_running = now, [], self._running
        before, self.load_max = self.load_max, max(1, int(self.limit))
        return before != self.load_max

    def update(self, latencies: list[float], most_running: int) -> None:
        raise NotImplementedError


class Gradient2(Windowed):
    """Netflix concurrency-limits, Gradient2Limit: initial 20, 20 to 200, headroom 4, tolerance 1.5, smoothing 0.2.

    The least is 1 here: with 20 it can do nothing for a small site.
    """

    def __init__(self) -> None:
        super().__init__(20)
        self._long = 0.0
        self._windows = 0

    def update(self, latencies: list[float], most_running: int) -> None:
        short = sum(latencies) / len(latencies)
        self._windows += 1
        if self._windows <= 10:
            self._long += (short - self._long) / self._windows
        else:
            self._long += (short - self._long) * 2 / 601
        if self._long > 2 * short:
            self._long *= 0.95
        if most_running < self.limit / 2:
            return
        gradient = min(max(1.5 * self._long / short, 0.5), 1.0)
        self.limit = min(max(0.8 * self.limit + 0.2 * (self.limit * gradient + 4), 1), 200)


class Vegas(Windowed):
    """Netflix concurrency-limits, VegasLimit: initial 20, alpha 3·log₁₀, beta 6·log₁₀, a floor that is renewed."""

    def __init__(self, random: Random) -> None:
        super().__init__(20)
        self._random = random
        self._floor = 0.0
        self._until_probe = 0.0

    def update(self, latencies: list[float], most_running: int) -> None:
        latency = sum(latencies) / len(latencies)
        self._until_probe -= len(latencies)
        if self._until_probe <= 0 or not self._floor or latency < self._floor:
            if self._until_probe <= 0:
                self._until_probe = self._random.uniform(0.5, 1) * 30 * self.limit
            self._floor = latency
            return
        if most_running < self.limit / 2:
            return
        queue = self.limit * (1 - self._floor / latency)
        unit = max(log10(self.limit), 1.0)
        if queue <= unit:
            self.limit += 6 * unit
        elif queue < 3 * unit:
            self.limit += unit
        elif queue > 6 * unit:
            self.limit -= unit
        self.limit = min(max(self.limit, 1), 1000)


class Envoy(Windowed):
    """Envoy's gradient controller: the median against that at three in flight, found every 60 s; buffer 25 %."""

    def __init__(self, random: Random) -> None:
        super().__init__(3)
        self._random = random
        self._floor = 0.0
        self._windows_left = 0
        self._before = 3.0

    def update(self, latencies: list[float], most_running: int) -> None:
        median = sorted(latencies)[len(latencies) // 2]
        if self._windows_left <= 0:  # this window was at three in flight
            self._floor = median
            self._windows_left = int(60 * self._random.uniform(1, 1.15))
            self.limit = self._before
            return
        self._windows_left -= 1
        gradient = min(max(self._floor * 1.25 / median, 0.5), 2.0)
        self.limit = min(max(self.limit * gradient + sqrt(self.limit), 3), 1000)
        if not self._windows_left:
            self._before, self.limit = self.limit, 3.0


class Aimd(Windowed):
    """One more while latency is below one and a half times the least seen; else a tenth fewer."""

    def __init__(self) -> None:
        super().__init__(20)
        self._floor = 0.0

    def update(self, latencies: list[float], most_running: int) -> None:
        latency = sum(latencies) / len(latencies)
        self._floor = min(self._floor, latency) if self._floor else latency
        if latency > 1.5 * self._floor:
            self.limit = max(1.0, 0.9 * self.limit)
        elif most_running * 2 >= self.limit:
            self.limit = min(self.limit + 1, 1000)
