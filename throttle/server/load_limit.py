"""How many requests this process can run at once, found out from those that run; only says a number, the gate obeys it.

A pure machine: it is told when requests come, begin and end, in microseconds of any clock. It never reads one, and
counts nothing for the gate. What it reads of the traffic is in `load_curve.py`.

People are served above the limit, one more or less on a large site and one more than it on a small one; machines fill
it. So the number is a little above where the site gets slower, less a half for the person on top. Nothing is tried out
upwards: people come in above it anyway. While there is room for all, it is three times as large (twice on one or two
processors) and stays so.
"""

import os
from collections.abc import Callable
from math import exp, log
from pathlib import Path

from throttle.server.load_curve import LoadCurve

LEAST, MOST = 1, 1000
"""the bounds of the number"""
STEP_REQUESTS = 20
STEP_SECONDS = 0.5
"""between two steps, at least; and at least what a request takes on average"""
MORE, LESS = 1.25, 0.5
"""the number is so many times that from which the site slows down, less a half"""
SEEN = 1.8
"""times the most that were in flight lately: further up nothing is believed"""
LOOKED_AT = 200
"""requests a second, about: at high rates not all are needed"""
MOST_STEP = 0.3
"""of the number's logarithm, in one step"""
CALM, BUSY = 0.6, 0.9
"""demand as a part of what the site can do: below the one the limit is wide, above the other it is the number found"""
PROBE_STEPS = 10
"""between two looks at how fast the site is with fewer in flight, if too few have been seen of that"""
FEW = 2.6
"""a number below which each request more slows a person down by half or more..."""
CALM_OF_FEW, BUSY_OF_FEW = 0.2, 0.4
"""...so that the limit counts earlier"""
CLEARLY = 0.25
"""below the next whole number at most, to go up to it, where few run"""
ONSET = 2.0
"""demand in half a second that engages the limit at once; in a shorter time, too, where somebody found no room"""
RUSH_SECONDS, RUSH = 0.05, 10
"""the shortest such time, and the fewest requests"""
_SECOND = 1_000_000
Began = tuple[int, int, float]
"""when; how many were in flight then, the request included; the integral of that number's logarithm until then"""
_LOG = [0.0, *(log(n) for n in range(1, 10_000))]
_LOGS = len(_LOG)


class LoadLimit:
    """The number, in `load_max`; `engaged` from 0 (there is room for all) to 1.

    `cores`: processors that this process may use, the number that it starts from. `random`: 0 to 1.
    """

    def __init__(self, cores: int, random: Callable[[], float]) -> None:
        self.curve = LoadCurve(float(max(cores, 1)))
        self._random = random
        self._rounding = 0.5
        self._target = float(min(max(cores, LEAST), MOST))
        self.load_max = self._wide()
        self.engaged = 0.0
        self.was_full = False
        """somebody found no room since the last step: else there is no reason to go up"""
        self.finished_in_all = 0
        # In flight, and its integral over time.
        self.running = 0
        self._area = self._log_running = 0.0
        self._last = 0
        self._compares_from = 0
        # Since the last step.
        self._step_began = 0
        self._finished = 0
        self._every = 1
        """of those that end, one in so many is looked at"""
        self._latencies = 0
        self._low = self._counted = 0.0
        self._is_low = 0.0
        self._probe_until = self._since_probe = 0
        self._most_running = 0.0
        # Demand.
        self._arrived = 0
        self._half_began = 0
        self._rate = 0.0
        self._rate_seen = 0.0

    def __str__(self) -> str:
        """«load_max is 5: this process slows down from 4.4 in flight, 231 requests measured»."""
        slows = f"this process slows down from {self.curve.k:.1f} in flight"
        wide = "" if self.engaged >= 1 else ", and there is room for all"
        return f"load_max is {self.load_max}: {slows}{wide}; {self.finished_in_all} requests measured"

    @property
    def found(self) -> float:
        """The number as found, before it is rounded and widened."""
        return self._target

    # What is told

    def arrived(self, now: int) -> bool:
        """A request has come that only room may keep from being served: of what other rules refuse, the site feels
        nothing. True when `load_max` has changed.
        """
        self._arrived += 1
        if self._probe_until and now >= self._probe_until:
            self._probe_until = 0
            return self._say()
        passed = now - self._half_began
        if passed < _SECOND // 2:
            if not (self.was_full and self.engaged < 1 and self._is_rush(passed / _SECOND)):
                return False
            self._engage(1.0, now)
            return self._say()
        return self._measure_demand(now, passed / _SECOND)

    def began(self, now: int) -> Began:
        """A request is being served. Returns what `ended` must be given."""
        self._area += self._log_running * (now - self._last)
        self._last = now
        self.running = running = self.running + 1
        self._log_running = _LOG[running if running < _LOGS else _LOGS - 1]
        return now, self.running, self._area

    def left(self, now: int) -> None:
        """One of them is no measure of anything: a stream, a failure."""
        self._area += self._log_running * (now - self._last)
        self._last = now
        self.running = running = self.running - 1
        self._log_running = _LOG[running if running < _LOGS else _LOGS - 1]

    @property
    def overlooks_next(self) -> bool:
        """Of which kind the next is that ends does not matter."""
        return (self._finished + 1) % self._every != 0

    def ended(self, kind: tuple[object, object], began: Began, now: int) -> bool:
        """A request has ended that was given `began`. True when `load_max` has changed."""
        self.left(now)
        at, found, area = began
        latency = now - at
        if latency <= 0:
            return False
        self.finished_in_all += 1
        self._finished += 1
        self._latencies += latency
        if found > self._most_running:
            self._most_running = found
        if self._finished % self._every:
            return False
        load = (self._area - area) / latency
        self._counted += 1
        self._low += load <= self._is_low
        if at >= self._compares_from:  # of those from before, only the longest are left
            self.curve.add(kind, found, load, latency)
        if self._finished < STEP_REQUESTS and not (self.curve.residual.found and self._finished >= 5):
            return False
        return self._is_time(now) and self._step(now)

    # What follows

    def _is_time(self, now: int) -> bool:
        return now - self._step_began >= max(STEP_SECONDS * _SECOND, self._latencies / self._finished)

    def _step(self, now: int) -> bool:
        curve = self.curve
        slower = curve.residual.found
        if slower:
            curve.doubt()
            self._compares_from = now
        # Far beyond what was seen nothing is known; but what is believed is not doubted because the site is idle.
        k = curve.fit(max(SEEN * self._most_running, (self._target + LESS) / MORE))
        aim = log(max(LEAST, MORE * k - LESS))
        here = log(self._target)
        move = min(max(0.5 * (aim - here), -MOST_STEP), MOST_STEP)
        if slower > 0:
            move = min(move, log(0.7))
        if move < 0 or self.was_full:
            self._target = min(max(exp(here + move), LEAST), MOST)
        self._is_low = log(0.8 * self._target)
        mean_latency = self._latencies / self._finished
        self._since_probe += 1
        is_unknown = self._low < 0.04 * self._counted and self._since_probe >= PROBE_STEPS
        self._probe_until = 0
        if is_unknown and self.engaged >= 1 and self._target >= 4:
            self._probe_until = now + int(1.5 * mean_latency)
            self._since_probe = 0
        self._low *= 0.96
        self._counted *= 0.96
        self._most_running *= 0.9
        self._rounding = self._random()  # up or down for a whole step: that contrast tells one limit from another
        rate = self._finished * _SECOND / (now - self._step_began)
        self._every = max(1, round(rate / LOOKED_AT))
        self._step_began = now
        self._finished = self._latencies = 0
        self.was_full = False
        return self._say()

    def _is_rush(self, seconds: float) -> bool:
        """So much has been asked for in so short a time that the limit must not wait for the half second to end."""
        if seconds < RUSH_SECONDS or self._arrived < RUSH:
            return False
        return self._arrived / seconds * self.curve.unimpeded / _SECOND > ONSET * self.curve.k

    def _engage(self, engaged: float, now: int) -> None:
        was, self.engaged = self.engaged, engaged
        if was < 0.8 <= engaged:
            self.curve.begin_blocks()
            self._compares_from = now

    def _measure_demand(self, now: int, seconds: float) -> bool:
        """What is asked for, as a part of what the site can do."""
        rate = self._arrived / seconds
        arrived, self._arrived, self._half_began = self._arrived, 0, now
        alone = self.curve.unimpeded / _SECOND
        if alone <= 0:
            return self._say()
        keep = max(5.0, 20.0 / max(self._rate, 0.1), 2 * alone)
        self._rate_seen = min(self._rate_seen + seconds, keep)
        self._rate += (rate - self._rate) * min(1.0, seconds / self._rate_seen)
        per_rate = alone / self.curve.k
        demand = self._rate * per_rate
        if rate * per_rate > ONSET and arrived >= RUSH:
            self._rate, demand = max(rate, self._rate), ONSET
        calm, busy = (CALM, BUSY) if self._target >= FEW else (CALM_OF_FEW, BUSY_OF_FEW)
        self._engage(min(max((demand - calm) / (busy - calm), 0.0), 1.0), now)
        return self._say()

    def _of_few(self, number: float) -> int:
        """Rounded, but up only by a clear margin: one more than one core can run, and the event loop starves."""
        return max(min(round(number), self.load_max), int(number + CLEARLY))

    def _wide(self) -> int:
        times = 3 if self._target >= FEW else 2
        return min(int(times * self._target) + times - 1, MOST)

    def _say(self) -> bool:
        """Put the number in whole requests. True when that is another than before."""
        number = self._target
        if self._probe_until:
            number *= 0.6
        elif self.engaged < 1:
            number += (self._wide() - number) * (1 - self.engaged)
        whole = self._of_few(number) if number < FEW else int(number + self._rounding)
        before, self.load_max = self.load_max, min(max(whole, LEAST), MOST)
        return self.load_max != before


def usable_cores() -> int:
    """The processors that this process may use, by its affinity and its control group's quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, round(int(quota) / int(period)))
    except (OSError, ValueError):
        pass  # no such limit here, or another system
    return max(cores, 1)
