"""What a pace has learned of a host, in a form that outlives it: a start for the next one, never a truth."""

import json
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Protocol, runtime_checkable

from throttle.client.pace import Pace

RATE_MIN, RATE_MAX = 1e-4, 1e6


@dataclass(frozen=True, slots=True)
class Learned:
    """`rate` a second; `low` and `high` bound it, with nine chances in ten, and `burst` fits it: 0 where no limit was
    met, only `rate` was borne.
    """

    rate: float
    low: float = 0.0
    high: float = 0.0
    burst: float = 0.0

    @property
    def is_limit(self) -> bool:
        return self.burst > 0.0

    def to_text(self) -> str:
        return json.dumps({name: round(value, 5) for name, value in asdict(self).items()}, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Learned | None":
        """None for what cannot be one: it was written by somebody else, or is damaged."""
        try:
            fields = json.loads(text)
            learned = cls(*(float(fields[name]) for name in ("rate", "low", "high", "burst")))
        except (ValueError, TypeError, KeyError):
            return None
        return learned if learned.is_sane() else None

    def is_sane(self) -> bool:
        numbers = (self.rate, self.low, self.high, self.burst)
        if not all(isfinite(number) for number in numbers) or not RATE_MIN <= self.rate <= RATE_MAX:
            return False
        return self.burst == 0.0 or (0.0 < self.low <= self.rate <= self.high and 1.0 <= self.burst <= RATE_MAX)

    def aged(self, halvings: float) -> "Learned":
        """As sure as it still is: with each halving a rate that was borne is half of it, and a limit's bounds lie twice
        as far out; once they are apart by a factor of two either way, half of it is a rate borne.
        """
        if not self.is_limit:
            return Learned(max(RATE_MIN, self.rate / 2.0**halvings))
        wider = 2.0**halvings
        low, high = self.rate - wider * (self.rate - self.low), self.rate + wider * (self.high - self.rate)
        if low < self.rate / 2 or high > 2 * self.rate:
            return Learned(self.rate / 2)
        return Learned(self.rate, low, high, self.burst)


@runtime_checkable
class Learner(Protocol):
    """A pace that tells more of a host than its rate."""

    def learned(self) -> Learned: ...

    def recall(self, learned: Learned) -> None:
        """Begin with it; before the first request."""


def learned_by(pace: Pace) -> Learned:
    return pace.learned() if isinstance(pace, Learner) else Learned(pace.rate)


def start_from(pace: Pace, learned: Learned) -> None:
    if isinstance(pace, Learner):
        pace.recall(learned)
    else:
        pace.rate = min(learned.rate, getattr(pace, "rate_max", learned.rate))
