"""Additive increase, multiplicative decrease, on the rate: TCP's law (Chiu and Jain, 1989)."""

from throttle.client.pace import rest_seconds
from throttle.rate_limit_fields import Quota


class AimdPace:
    """`increase` requests a second more for each second of success, times `decrease` on a drop."""

    capacity = 1.0
    catch_up = 0.0

    def __init__(
        self,
        *,
        rate: float = 1.0,
        rate_min: float = 0.1,
        rate_max: float = 1000.0,
        increase: float = 0.5,
        decrease: float = 0.5,
        in_flight_max: int = 100,
    ) -> None:
        self.rate = rate
        self.rate_min = rate_min
        self.rate_max = rate_max
        self.increase = increase
        self.decrease = decrease
        self.in_flight_max: float = in_flight_max

    def sent(self, now: float, height: int) -> None:
        pass

    def served(self, now: float, sent_at: float, height: int) -> None:
        # `rate` answers a second arrive, each adds its share of a second.
        self.rate = min(self.rate_max, self.rate + self.increase / self.rate)

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if in_a_row <= 1:  # a scout's refusal is the same trouble, met once more
            self.rate = max(self.rate_min, self.rate * self.decrease)
        return rest_seconds(told, in_a_row, first=1 / self.rate)

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        return 0.0
