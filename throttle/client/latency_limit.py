"""How many requests at once keep a host busy and do not make it slow: told from latency, against a floor."""

# Answers before a verdict: the mean of fewer is noise.
WINDOW = 20
# The floor is a mean, not a minimum, which would be biased low and cost a worker; of at most so many answers.
FLOOR_ANSWERS = 100
# By Little's law the slots in use are limit × floor ÷ mean; so many more keep the host's workers busy without a
# queue that is felt.
HEADROOM = 1.22


class LatencyLimit:
    """`limit` is how many may be open; it starts low, grows while that costs no latency, and falls when it does."""

    def __init__(self, limit: float, limit_max: float) -> None:
        self.limit = limit
        self.limit_max = limit_max
        self.mean: float | None = None
        self._floor = 0.0
        self._floor_answers = 0
        self._sum = 0.0
        self._answers = 0
        self._since_growth = 0
        self._was_binding = False
        self._changed_at = float("-inf")
        self._is_starting = True
        self._patience = 10 * WINDOW

    def sent(self, height: int) -> None:
        if height >= int(self.limit):
            self._was_binding = True

    def served(self, now: float, sent_at: float, height: int) -> None:
        latency = now - sent_at
        if height <= max(1.0, self.limit / 2):
            self._note_floor(latency)
        if sent_at < self._changed_at:
            return  # it met the host under another limit
        self._sum += latency
        self._answers += 1
        self._since_growth += 1
        if self._answers >= WINDOW:
            self.mean = self._sum / self._answers
            self._judge(now)
            self._sum = self._answers = 0

    def refused(self, limit: float, now: float) -> None:
        """So many are served and one more is not: hold, and ask again ever more rarely."""
        self._patience = min(20 * WINDOW * 10, self._patience * 2)
        self._change(max(1.0, limit), now)
        self._is_starting = False

    def _note_floor(self, latency: float) -> None:
        answers = self._floor_answers = min(self._floor_answers + 1, FLOOR_ANSWERS)
        if answers > 1:
            latency = min(latency, 4 * self._floor)
        self._floor += (latency - self._floor) / answers

    def _judge(self, now: float) -> None:
        assert self.mean is not None
        if not self._floor_answers:
            return
        in_use = self.limit * min(1.0, self._floor / self.mean)
        best = max(HEADROOM * in_use, in_use + 1)
        if self.limit > best + 0.7:
            if self._was_binding:
                self._change(max(1.0, int(best + 0.3)), now)
                self._is_starting = False
        elif self._was_binding:
            if self._is_starting:
                self._change(self.limit * 1.5 + 0.5, now)
            elif self._since_growth >= self._patience:
                self._change(self.limit + 1, now)
        self._was_binding = False

    def _change(self, limit: float, now: float) -> None:
        self.limit = min(limit, self.limit_max)
        self._changed_at = now
        self._since_growth = 0
        self._sum = self._answers = 0
