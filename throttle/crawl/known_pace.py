"""The pace for a host whose rate somebody knows: kept on schedule, and only a refusal makes it slower."""

from throttle.client.pace import rest_seconds
from throttle.rate_limit_fields import Quota

# An event loop is late at each turn, by milliseconds or on a busy machine by tens of them, and sometimes all slots are
# taken. What one request lost so, the next may make up for, by a burst of at most a tenth of a second's worth. With a
# fiftieth a host at 84 a second was done 4 to 7 % late, simulated; with this it is on time.
LATE_SECONDS = 0.1
# After a refusal so much is left of the rate, and each answer brings back so much of the whole.
CUT, BACK = 0.8, 0.005


class KnownPace:
    def __init__(self, rate: float, in_flight_max: int = 100) -> None:
        self.told_rate = rate
        self.rate = rate
        self.capacity = 1.0 + rate * LATE_SECONDS
        self.catch_up = 0.0
        self.in_flight_max: float = in_flight_max

    def sent(self, now: float, height: int) -> None:
        pass

    def served(self, now: float, sent_at: float, height: int) -> None:
        self.rate = min(self.told_rate, self.rate + BACK * self.told_rate)

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if in_a_row <= 1:
            self.rate *= CUT
        return rest_seconds(told, in_a_row, first=max(0.5, 1.5 / self.rate))

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        return quota.seconds if quota.remaining < 1 else 0.0
