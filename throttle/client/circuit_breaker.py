"""Closed, open, half-open; and while half-open one scout, never a crowd."""

from enum import Enum


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"  # nobody passes
    HALF_OPEN = "half-open"  # one passes, and what it meets decides


class CircuitBreaker:
    """After `rest()` nobody passes until the time is over *and* what was in flight has landed; then one scout.

    The time can be lengthened, never shortened. A scout that is served closes the breaker; one that is dropped
    leaves it to the next `rest()`; one that is lost (cancelled) makes room for another.
    """

    __slots__ = ("is_resting", "rest_until", "scout_is_out")

    def __init__(self) -> None:
        self.is_resting = False
        self.rest_until = 0.0
        self.scout_is_out = False

    def state(self, now: float) -> State:
        if not self.is_resting:
            return State.CLOSED
        return State.OPEN if now < self.rest_until else State.HALF_OPEN

    def rest(self, until: float) -> None:
        self.rest_until = max(self.rest_until, until) if self.is_resting else until
        self.is_resting = True

    def seconds_until_pass(self, now: float, in_flight: int) -> float:
        """0: pass. Infinity: what is in flight must land first, and its landing wakes the queue."""
        if not self.is_resting:
            return 0.0
        if now < self.rest_until:
            return self.rest_until - now
        return float("inf") if in_flight or self.scout_is_out else 0.0

    def send_scout(self) -> None:
        self.scout_is_out = True

    def scout_served(self) -> None:
        self.is_resting = self.scout_is_out = False

    def scout_dropped(self) -> None:
        self.scout_is_out = False

    scout_lost = scout_dropped
