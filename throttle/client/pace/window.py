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
# People who write down a window choose one of these; so what two rounded ends leave open is settled.
ROUND_SECONDS = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
# Room for the network's jitter, as a share of the window and in seconds; of a length that is not round.
UNDER, JITTER, UNDER_UNROUND = 0.003, 0.015, 0.015
# Windows, and requests, until it is tried whether one holds more by now; the excess at first, doubled each window.
WINDOWS, PATIENCE, RISE, FULL = 3.0, 120.0, 0.04, 0.9
# Around the number that an unsure window held before, requests go one at a time: only one of them is refused.
NEAR, NEAR_COUNT = 0.05, 2


class WindowPace:
    """`rate` is None while no window is known."""

    def __init__(self) -> None:
        self.rate: float | None = None
        self.is_near = False  # to the end of what a window held before, which is not sure to be one
        self._even = 0.0  # the rate that spends a window evenly
        self._quota = 0
        self._length = 0.0
        self._end = 0.0  # of the window that is open
        self._used = 0  # of it
        self._since = 0  # requests since it was last measured
        self._excess = 0.0
        self._accepted = 0
        self._start: float | None = None
        self._told = 0.0
        self._before = 0  # accepted until the end before

    def begin(self, now: float) -> None:
        """The first request after a rest is about to be sent."""
        if self._start is None:
            self._start = now

    def sent(self, now: float, count: int) -> None:
        """A request leaves now, the `count`-th since the last rest."""
        if self.rate is None:
            self.is_near = (
                self._told >= SECONDS and abs(self._accepted + count - self._before) <= NEAR * self._before + NEAR_COUNT
            )
            return
        self.is_near = False
        self._since += 1
        if now >= self._end:
            self._end += (1 + int((now - self._end) / self._length)) * self._length
            # Only a window that was used to the full at this pace has borne it.
            is_borne = self._used >= FULL * self.rate * self._length
            if is_borne and self._since >= max(PATIENCE, WINDOWS * self._quota):
                self._excess = max(RISE, 2 * self._excess)
                self.rate = self._even * (1 + self._excess)
            self._used = 0
        self._used += 1

    def refused(self, now: float, told: float | None, pace: float, accepted: int) -> bool:
        """True if this was a window's end, or its quota spent before."""
        self._accepted += accepted
        if told is None:
            return False
        if self.rate is not None and self._is_held(now, told):
            self._since, self._excess, self.rate = 0, 0.0, self._even
            self._close(now + told)
            return True
        self.rate = None
        if self._accepted < FEW and told < SURE_SECONDS:
            return False
        is_countdown = (
            abs(told - self._told) > SAME_WAIT * self._told
            or abs(self._accepted - self._before) <= SAME_COUNT * self._before
        )
        # The first may be a lock-out, too: a quota that is spent at once costs a wait that it would have cost anyway.
        is_first = self._told < SECONDS and self._accepted >= FEW
        is_long = told >= SECONDS and (told - ROUNDING) * pace > REQUESTS
        is_found = is_long and is_countdown and not is_first
        if is_found:
            self._measure(now + told - (self._start or 0.0))
        self._told = told
        self._close(now + told)
        return is_found

    def _close(self, end: float) -> None:
        self._accepted, self._before = 0, self._accepted
        self._start = self._end = end
        self._used = 0

    def _is_held(self, now: float, told: float) -> bool:
        """It held as many as before, and ends when it should; or it slides, and bore the rate it should; about."""
        measured = self._accepted / max(0.1, now + told - (self._start or 0.0))
        if abs(measured / self._even - 1) < SAME or (self._excess and told <= self._length + ROUNDING):
            return True  # while it was asked for more: it holds no more
        border = ROUNDING * self._quota / self._length
        is_count = abs(self._used - 1 - self._quota) <= SAME * self._quota + border + NEAR_COUNT
        late = (now + told - self._end + 0.5 * self._length) % self._length - 0.5 * self._length
        return is_count and abs(late) <= max(2 * ROUNDING, SAME * self._length)

    def _measure(self, seconds: float) -> None:
        """From the end before to this one as many were accepted as a window holds."""
        nearest = min(ROUND_SECONDS, key=lambda length: abs(length - seconds))
        is_round = abs(nearest - seconds) <= min(1.5 * ROUNDING, 2 * SAME * seconds)
        self._length = nearest if is_round else max(0.1, seconds)
        self._quota = self._accepted
        under = max(UNDER, JITTER / self._length) if is_round else UNDER_UNROUND
        self._even = self.rate = max(1e-3, self._quota / self._length * (1 - under))
        self._since, self._excess = 0, 0.0
