"""How many requests at once keep a host busy and do not make it slow; or how many it takes at all.

Told from latency against a floor, and from refusals that come at heights which are seldom reached.
"""

from collections import deque

# Answers before a verdict: the mean of fewer is noise.
WINDOW = 20
# The floor is a mean, not a minimum, which would be biased low and cost a worker; of at most so many answers.
FLOOR_ANSWERS = 100
# When our own loop is late, all answers of a window may be heard late, and the host is not slow. Where slots are known
# so many windows must agree, and what latency took is tried again after the least patience, since nothing refused it.
SLOW_WINDOWS = 2
# By Little's law the slots in use are limit × floor ÷ mean; so many more keep the host's workers busy without a
# queue that is felt.
HEADROOM = 1.38
# Answers between two attempts at one slot more; after each refusal twice as many.
PATIENCE, PATIENCE_MAX = 200, 4000
# A refusal is one of slots only at a height that few of the last answers left at …
HEIGHTS, SELDOM, SELDOM_SURE = 400, 0.2, 0.08
# … or at the very limit, when most of so many last ones left there or one below: what the network holds is in no slot,
# so as many may have been served before. Of fewer than MANY that would be no wonder …
HELD, MANY = 100, 8
# … and if no other comes within so many answers: the limit would have been found.
PROOF = 60
# So many of those at whose height it first came are tried next: what the network holds is in no slot.
FEWER = 0.85


class LatencyLimit:
    """`limit` is how many may be open; it starts low, grows while that costs no latency, and falls when it does."""

    def __init__(self, limit: float, limit_max: float) -> None:
        self.limit = limit
        self.limit_max = limit_max
        self._floor = 0.0
        self._floor_answers = 0
        self._sum = 0.0
        self._answers = 0
        self._since_change = 0
        self._since_refusal = 0
        self._was_binding = False
        self._slow: list[float] = []  # the means of the last windows, as long as each says that fewer would do
        self._borne = limit  # that were open before latency spoke against it, and were not refused
        self._changed_at = float("-inf")
        self._is_starting = True
        self._patience = PATIENCE
        self._heights: deque[int] = deque(maxlen=HEIGHTS)
        self._before_refusal: float | None = None  # the limit, while slots are only suspected
        self.is_proven = False  # by a limit that was kept and not refused until it was raised
        self.was_wrong = False  # it was the pace that was refused, both times

    def sent(self, height: int) -> bool:
        """True if this was as many as may be open: the pace was not the one that held it back."""
        if height >= int(self.limit):
            self._was_binding = True
            return True
        return False

    def served(self, now: float, sent_at: float, height: int) -> None:
        latency = now - sent_at
        self._heights.append(height)
        self._since_refusal += 1
        if height <= max(1.0, self.limit / 2):
            self._note_floor(latency)
        if sent_at < self._changed_at:
            return  # it met the host under another limit
        self._sum += latency
        self._answers += 1
        self._since_change += 1
        if self._answers >= WINDOW:
            self._judge(now, self._sum / self._answers)
            self._sum = 0.0
            self._answers = 0

    def refused(self, now: float, height: int, is_pace_known: bool = False) -> bool:
        """True if the refusal is one of slots, which one fewer at once would have avoided."""
        self.was_wrong = False
        if self._before_refusal is not None:
            before, self._before_refusal = self._before_refusal, None
            if self._since_refusal < PROOF:
                self.limit = before
                self.was_wrong = True
                self.is_proven = False
                return False
            self.is_proven = True
        share = SELDOM_SURE if is_pace_known else SELDOM
        seldom = sum(1 for served in self._heights if served >= height) <= share * len(self._heights)
        is_full = height >= max(MANY, int(self.limit)) and not self._is_starting and self._holds_back()
        if height < 3 or not (seldom or is_full):
            return False
        self._before_refusal = self.limit
        self._since_refusal = 0
        self._patience = min(PATIENCE_MAX, 2 * self._patience)
        self._change(height - 1 if self.is_proven else min(height - 1, int(FEWER * height)), now)
        self._borne = self.limit
        self._is_starting = False
        return True

    def _holds_back(self) -> bool:
        """Most of the last requests had to wait for a slot, and not for the pace."""
        last = list(self._heights)[-HELD:]
        return sum(1 for served in last if served >= int(self.limit) - 1) >= HELD / 2

    def retract(self) -> None:
        """Even one alone was refused: that was no matter of slots."""
        if self._before_refusal is not None:
            self.limit, self._before_refusal = self._before_refusal, None
            self.is_proven = False

    def _note_floor(self, latency: float) -> None:
        answers = self._floor_answers = min(self._floor_answers + 1, FLOOR_ANSWERS)
        if answers > 1:
            latency = min(latency, 4 * self._floor)
        self._floor += (latency - self._floor) / answers

    def _judge(self, now: float, mean: float) -> None:
        if not self._floor_answers or mean <= 0.0:  # a coarse clock sees no time pass
            return
        was_binding, self._was_binding = self._was_binding, False
        if not was_binding:
            return
        if self.limit > self._best(mean) + 0.7:
            self._slow.append(mean)
            is_slots = self.is_proven or self._before_refusal is not None
            if len(self._slow) >= (SLOW_WINDOWS if is_slots else 1):
                self._borne = max(self._borne, self.limit)
                self._change(int(self._best(min(self._slow)) + 0.3), now)
                self._is_starting = False
            return
        self._slow.clear()
        if self._is_starting:
            self._change(1.5 * self.limit + 0.5, now)
        elif self._since_change >= (PATIENCE if self.limit + 1 <= self._borne else self._patience):
            self._change(self.limit + 1, now)

    def _best(self, mean: float) -> float:
        """So many keep a host busy that answers in `mean` seconds, and make no queue that is felt."""
        in_use = self.limit * min(1.0, self._floor / mean)
        return max(HEADROOM * in_use, in_use + 1)

    def _change(self, limit: float, now: float) -> None:
        self.limit = max(1.0, min(limit, self.limit_max))
        self._changed_at = now
        self._slow.clear()
        self._since_change = 0
        self._sum = 0.0
        self._answers = 0
