"""The fleet's pace, in the worker that steers: an ordinary pace that hears what all workers saw, in order of time.

As one process would hear it: a refusal after all that left before the workers had heard of it, and only the first.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from throttle.client.fleet.call import MICRO, Report
from throttle.client.fleet.open_requests import OpenRequests
from throttle.client.learned import Learned, learned_by
from throttle.client.pace import Pace
from throttle.rate_limit_fields import Quota

LAG = 0.3
"""seconds for which a sighting is kept back: others tell what they saw a lease later, and a pace hears in order"""
SETTLE = 0.1
"""seconds after which the steering worker comes once more for what led to a refusal; nothing is sent meanwhile"""
NEWS = 0.25
"""seconds in which all have heard of a refusal, and send no more; or half the wait that was told"""
LITTLE = 1.25
"""times the rate at which as many would be open as may be (Little's law): beyond it leases are of no use"""

BEAT, BEAT_MAX, BEAT_GROWS = 0.5, 2.0, 1.5
"""seconds between the calls of one who steers; more where requests are rarer, and so many times as many after each call
as long as a limit is known and the rate stays within `STEADY` of what it was"""
STEADY = 0.02


class Steering:
    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.beat = BEAT
        self._said = 0.0
        self.rest_least = 0.0  # seconds that the pace asks for after the last refusal
        self._heard: list[tuple[float, int, list[Any]]] = []  # (time, order, sighting), not yet told to the pace
        self._count = 0
        self._until = float("-inf")  # the pace has heard what came before
        self._refused_at: float | None = None
        self._rate_after: float | None = None  # until the first after the rest is heard
        self._open = OpenRequests()
        self._slots_told_at = float("-inf")  # when the pace, by what it hears, has changed how many may be open
        self._slots_since = float("-inf")  # … and all have heard of it

    @property
    def rate(self) -> float:
        """After a rest, what the pace will say once it has heard of the scout: nobody may go on at the old rate."""
        rate = self.pace.rate if self._rate_after is None else self._rate_after
        return min(rate, LITTLE * self.pace.in_flight_max / self._open.mean)

    def say(self) -> tuple[float, Learned]:
        """The rate for all, and what was learned; the longer these stand, the longer is the next `beat`."""
        rate, learned = self.rate, learned_by(self.pace)
        is_steady = learned.is_limit and abs(rate - self._said) <= STEADY * self._said
        self.beat = min(BEAT_MAX, BEAT_GROWS * self.beat) if is_steady else BEAT
        self._said = rate
        return rate, learned

    def note(self, now: float, seen: Sequence[Report]) -> None:
        """`now` is when the reports were answered, on this worker's clock."""
        for report in seen:
            at = now - report.age
            for kind, age, *rest in report.sightings:
                if kind == "dropped":
                    if not report.is_first:
                        continue  # it left before the cut
                    rest[-1] = report.row
                    self._refused_at = now
                self._count += 1
                self._heard.append((at - age / MICRO, self._count, [kind, *rest]))

    @property
    def settles_at(self) -> float | None:
        """When to ask for what led to the refusal that was noted: with the answer it can be judged."""
        return None if self._refused_at is None else self._refused_at + SETTLE

    def hear(self, now: float, asked_at: float) -> None:
        """Tell the pace what is old enough to be complete; `asked_at` is when the last reports were asked for."""
        until = now - LAG
        if self._refused_at is not None:
            if asked_at < self._refused_at + SETTLE:
                return
            until, self._refused_at = float("inf"), None
        self._heard.sort(key=_order)
        told = 0
        for time, _, sighting in self._heard:
            if time > until:
                break
            slots = self.pace.in_flight_max
            self._tell(max(time, self._until), time, sighting)
            if self.pace.in_flight_max != slots:
                self._slots_told_at, self._slots_since = time, now + NEWS + self._open.mean
            self._until = max(time, self._until)
            told += 1
        del self._heard[:told]

    def _tell(self, now: float, time: float, sighting: list[Any]) -> None:
        pace = self.pace
        match sighting:
            case ["sent"]:
                pace.sent(now, self._open.sent(now, int(pace.in_flight_max)))
                self._rate_after = None
            case ["served", age]:
                self._served(time, age / MICRO)
            case ["dropped", age, told, row]:
                sent_at, height = self._open.refused(time, age / MICRO)
                self.rest_least = pace.dropped(time, sent_at, height, told, row)
                self._rate_after = _rate_after(pace, now + self.rest_least)
            case ["told", remaining, seconds, limit, window, in_flight]:
                pace.told(now, Quota(remaining, seconds, limit, window), in_flight)

    def _served(self, time: float, seconds: float) -> None:
        """What left before all had heard of the last change of the slots must not be taken for a result of it."""
        height = self._open.served(time, seconds)
        if time - seconds < self._slots_since:
            time = min(time, self._slots_told_at)
        self.pace.served(time, time - seconds, height)


def _rate_after(pace: Pace, now: float) -> float:
    """That it will say when the first request has left again, at `now`."""
    try:
        trial = deepcopy(pace)
    except TypeError:  # a caller's own pace may hold what cannot be copied, as a lock
        return pace.rate
    trial.sent(now, 1)
    return trial.rate


def _order(item: tuple[float, int, list[Any]]) -> tuple[float, int]:
    """By time; a refusal when all workers have heard of it: what they sent until then left before the rest."""
    time, count, sighting = item
    if sighting[0] != "dropped":
        return time, count
    told = sighting[3]
    return time + (NEWS if told is None else min(NEWS, told / 2)), count
