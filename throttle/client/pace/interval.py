"""An interval between requests that doubles on a drop and shrinks by a step on success."""

from random import Random

from throttle.client.pace import rest_seconds
from throttle.rate_limit_fields import Quota


class IntervalPace:
    """The AdaptiveLimiter of «Adaptive rate control in asynchronous crawlers», its numbers as defaults.

    Its two remedies for the lag of concurrent tasks, a pause until the queue is clear and a drained bucket, are
    the host's. «Some jitter», which its code leaves out, lengthens a doubled interval by up to `jitter` of it.
    """

    capacity = 1.0
    catch_up = 0.0

    def __init__(
        self,
        random: Random,
        *,
        interval: float = 1.0,
        interval_min: float = 0.1,
        interval_max: float = 10.0,
        factor: float = 2.0,
        step: float = 0.05,
        jitter: float = 0.1,
        in_flight_max: int = 20,
    ) -> None:
        self.interval = interval
        self.interval_min = interval_min
        self.interval_max = interval_max
        self.factor = factor
        self.step = step
        self.jitter = jitter
        self.in_flight_max: float = in_flight_max
        self._random = random

    @property
    def rate(self) -> float:
        return 1 / self.interval

    @rate.setter
    def rate(self, rate: float) -> None:
        self.interval = 1 / rate

    def sent(self, now: float, height: int) -> None:
        pass

    def served(self, now: float, sent_at: float, height: int) -> None:
        self.interval = max(self.interval_min, self.interval - self.step)

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        longer = self.interval * self.factor * (1 + self._random.uniform(0.0, self.jitter))
        self.interval = min(self.interval_max, longer)
        return rest_seconds(told, in_a_row, first=self.interval)

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        return 0.0
