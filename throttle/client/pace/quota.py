"""The pace that a host's RateLimit fields leave: what remains, spread over the time it must last."""

from throttle.rate_limit_fields import Quota

# A sliding window is kept to by its policy's rate, a little under it: the network moves requests about.
UNDER = 0.99


class QuotaPace:
    """What was told last, less what was sent since.

    Seconds are told rounded up, so of several ends told for one window the earliest is the truest.
    """

    def __init__(self) -> None:
        self.was_told = False  # ever
        self.rest = 0.0  # seconds that the last answer asks for before the next request
        self._left = 0.0
        self._end = float("-inf")
        self._policy_rate: float | None = None
        self._is_sliding = False

    def told(self, now: float, quota: Quota, in_flight: int) -> None:
        self.was_told = True
        end = now + quota.seconds
        if now < self._end:
            self._end = min(self._end, end)
        else:
            # A fixed window ends a whole window after the last one; a sliding one as soon as its next hit leaves.
            # After a long rest nothing tells, so what was known holds.
            window = quota.window_seconds
            if window is not None and now < self._end + window:
                self._is_sliding = end < self._end + 0.9 * window
            self._end = end
        # What is in flight is not yet counted by the host.
        self._left = quota.remaining - in_flight
        if quota.limit and quota.window_seconds:
            self._policy_rate = UNDER * quota.limit / quota.window_seconds
        self.rest = 0.0
        if quota.remaining < 1:
            # At the policy's even rate the next place comes just in time, whatever rounding makes of it.
            interval = 1 / self._policy_rate if self._policy_rate is not None else 0.0
            self.rest = min(quota.seconds, interval) if quota.seconds <= interval + 1 else quota.seconds

    def sent(self) -> None:
        self._left -= 1

    def is_told(self, now: float) -> bool:
        """True until the window told is over for a second, or for twice the policy's interval."""
        patience = 1.0 if self._policy_rate is None else max(1.0, 2 / self._policy_rate)
        return now < self._end + patience

    def rate(self, now: float) -> float:
        seconds = max(0.05, self._end - now)
        if self._left < 1:
            return self._policy_rate or 0.5 / seconds
        if self._policy_rate is not None and self._is_sliding:
            return self._policy_rate  # «t» is but the time until one more hit leaves
        return self._left / seconds
