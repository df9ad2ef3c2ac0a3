"""Is a slow limit, told by a refusal or two, a limit at all? Who comes to a busy host is refused early by chance.

A bucket that is slow and next to empty explains that as well, and to wait for the next refusal that is due under it
takes minutes. So a few requests leave close together, more than such a bucket could bear. If one is refused, it was
the bucket; nothing else is learned from it, and it is not asked again. If all are served, the limit is elsewhere.
"""

from throttle.client.pace.bucket_fit import Fit

# A fit is doubted that rests on so few refusals, and is no faster and no larger than this; but not if a wait was ever
# told that only a slow bucket tells, or none was.
REFUSALS, RATE, BURST, TOLD = 4, 2.0, 4.0, 1.5
# The test begins after so many requests, and is so many times faster, or so many a second.
AFTER, TIMES, QUICK = 3, 8.0, 4.0
# More than the bucket is believed to hold.
MORE = 2


class Doubt:
    """At most one test of a host is refused."""

    def __init__(self) -> None:
        self._size: int | None = None  # requests of the test that is to be made
        self._is_over = False  # it was tested, or need not be

    def fitted(self, fit: Fit, told: float | None, refusals: int) -> None:
        """After a refusal, of which there were so many, this was fitted."""
        self._is_over |= refusals > REFUSALS or told is None or told > TOLD
        is_doubtful = fit.rates[2] <= RATE and fit.burst <= BURST and not self._is_over
        self._size = int(fit.burst) + MORE if is_doubtful else None

    def is_confirmed(self, sent: int) -> bool:
        """A refusal now, after `sent` requests, is the one that the test asked for."""
        if self._size is None or sent <= AFTER:
            return False
        self._size = None
        self._is_over = True
        return True

    def rate(self, rate: float, sent: int) -> float:
        """`rate`, or that of the test."""
        if self._size is None or sent < AFTER:
            return rate
        return max(TIMES * rate, QUICK)

    def is_right(self, sent: int) -> bool:
        """All of the test was sent, and nothing refused."""
        if self._size is None or sent < AFTER + self._size:
            return False
        self._size = None
        return True
