"""The pace under a countdown: a wait of many requests' time, told by who counts a window and refills it at its end.

What was accepted from one end to the next is what a window holds, exactly; no bucket has to be guessed.
"""

# A told wait of so many seconds, and of so many requests' time, rounded up as it is, is no bucket's next token.
SECONDS, REQUESTS, ROUNDING = 1.9, 8.0, 1.0
# Fewer accepted measure nothing, unless the wait is so long that its rounding is a small share of it.
FEW, SURE_SECONDS = 4, 10.0
# A lock-out tells the same wait each time, give or take this share, after as many requests as the pace happens to make
# of it; a countdown tells another, or has had room for the same number, give or take this share.
SAME_WAIT, SAME_COUNT = 0.1, 0.03
# Measured again, a window holds the same, give or take this share.
SAME = 0.1
# … if it was refused at about this pace. At a much higher one a bucket is emptied, too.
HELD = 1.06
# To be refused once at the end of a large window measures it; of a small one that is too large a share.
LARGE, OVER, UNDER = 300, 1.02, 0.985


class WindowPace:
    """`rate` is None while no window is known."""

    def __init__(self) -> None:
        self.rate: float | None = None
        self.plan = 0.0  # requests until the pace accelerates
        self._measured: float | None = None
        self._accepted = 0
        self._start: float | None = None
        self._told = 0.0
        self._before = 0  # accepted until the end before

    def begin(self, now: float) -> None:
        if self._start is None:
            self._start = now

    def refused(self, now: float, told: float | None, pace: float, accepted: int) -> bool:
        """True if this was a window's end, or its quota spent before."""
        self._accepted += accepted
        if told is None or (self._accepted < FEW and told < SURE_SECONDS):
            return False
        end = now + told
        measured = self._accepted / max(0.1, end - (self._start or 0.0))
        is_countdown = (
            abs(told - self._told) > SAME_WAIT * self._told
            or abs(self._accepted - self._before) < SAME_COUNT * self._before
        )
        # The first may be a lock-out, too: a quota that is spent at once costs a wait that it would have cost anyway.
        is_first = self._told < SECONDS and self._accepted >= FEW
        is_long = told >= SECONDS and (told - ROUNDING) * pace > REQUESTS and is_countdown and not is_first
        is_same = (
            self._measured is not None
            and pace < HELD * self._measured
            and abs(measured / self._measured - 1) < SAME
            and (told < SECONDS or is_countdown)
        )
        accepted, self._accepted, self._before = self._accepted, 0, self._accepted
        self._told, self._start = told, end
        if not (is_same or is_long):
            self._measured = self.rate = None
            return False
        self._measured = max(measured, 1e-3)
        self.rate = self._measured * (OVER if accepted > LARGE else UNDER)
        patience = 160.0 if is_same or measured < 0.2 else 75.0
        self.plan = max(40.0, min(patience, 150.0 / self._measured), (3.0 if is_same else 1.2) * accepted)
        return True
