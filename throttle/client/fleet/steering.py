"""The fleet's pace, in the worker that steers: an ordinary pace that hears what all workers saw, in order of time."""

from collections.abc import Sequence
from typing import Any

from throttle.client.fleet.call import MICRO, Report
from throttle.client.pace import Pace
from throttle.rate_limit_fields import Quota

LAG = 0.3
"""seconds for which a sighting is kept back: others tell what they saw a lease later, and a pace hears in order"""
SETTLE = 0.1
"""seconds after a refusal in which all have told what led to it; nothing is sent meanwhile"""


class Steering:
    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.rest_least = 0.0  # seconds that the pace asks for after the last refusal
        self._heard: list[tuple[float, int, list[Any]]] = []  # (time, order, sighting), not yet told to the pace
        self._count = 0
        self._until = float("-inf")  # the pace has heard what came before
        self._refused_at: float | None = None

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
        """When the refusal that was noted can be judged."""
        return None if self._refused_at is None else self._refused_at + SETTLE

    def hear(self, now: float) -> None:
        """Tell the pace what is old enough to be complete."""
        until = now - LAG
        if self._refused_at is not None:
            if now < self._refused_at + SETTLE:
                return
            until, self._refused_at = now, None
        self._heard.sort(key=lambda item: item[:2])
        told = 0
        for time, _, sighting in self._heard:
            if time > until:
                break
            self._tell(max(time, self._until), time, sighting)
            self._until = max(time, self._until)
            told += 1
        del self._heard[:told]

    def _tell(self, now: float, time: float, sighting: list[Any]) -> None:
        pace = self.pace
        match sighting:
            case ["sent", height]:
                pace.sent(now, height)
            case ["served", age, height]:
                pace.served(now, time - age / MICRO, height)
            case ["dropped", age, height, told, row]:
                self.rest_least = pace.dropped(now, time - age / MICRO, height, told, row)
            case ["told", remaining, seconds, limit, window, in_flight]:
                pace.told(now, Quota(remaining, seconds, limit, window), in_flight)
