"""Full jitter, under a sane Retry-After, capped in delay and in count (Brooker, «Exponential Backoff and Jitter»)."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before a retry is evenly drawn between 0 and min(cap, base · 2ⁿ) seconds."""

    retries_max: int = 5
    base_seconds: float = 0.5
    cap_seconds: float = 30.0

    def seconds(self, retry: int, random: Random) -> float:
        """`retry` counts from 0."""
        # 2.0 ** 1024 overflows; the cap is reached long before.
        return random.uniform(0.0, min(self.cap_seconds, self.base_seconds * 2.0 ** min(retry, 64)))
