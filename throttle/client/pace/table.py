"""10 a second at first, halved on a 429, halved again when the next comes at once, one more per 100 successes."""

from throttle.client.pace import rest_seconds
from throttle.rate_limit_fields import Quota


class TablePace:
    """The domain_rates table of «Per-domain rate limiting for 75K-URL jobs», with the fix its authors describe.

    Their rate «never shrank» until they counted 429s in a row: two inside `window_seconds` halve once more each
    (the n-th in a row divides by 2ⁿ).
    """

    capacity = 1.0
    catch_up = 0.0

    def __init__(
        self,
        *,
        rate: float = 10.0,
        rate_min: float = 1.0,
        rate_max: float = 1000.0,
        successes_per_increase: int = 100,
        window_seconds: float = 1.0,
        in_flight_max: int = 50,
    ) -> None:
        self.rate = rate
        self.rate_min = rate_min
        self.rate_max = rate_max
        self.successes_per_increase = successes_per_increase
        self.window_seconds = window_seconds
        self.in_flight_max: float = in_flight_max
        self._successes = 0
        self._drops_in_a_row = 0
        self._dropped_at = float("-inf")

    def sent(self, now: float, height: int) -> None:
        pass

    def served(self, now: float, sent_at: float, height: int) -> None:
        self._successes += 1
        if self._successes >= self.successes_per_increase:
            self._successes = 0
            self.rate = min(self.rate_max, self.rate + 1)

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        rest = rest_seconds(told, in_a_row, first=1 / self.rate)
        is_in_window = now - self._dropped_at <= self.window_seconds + rest
        self._drops_in_a_row = self._drops_in_a_row + 1 if is_in_window else 1
        self._dropped_at = now
        self._successes = 0
        self.rate = max(self.rate_min, self.rate / 2.0 ** min(self._drops_in_a_row, 16))
        return rest

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        return 0.0
