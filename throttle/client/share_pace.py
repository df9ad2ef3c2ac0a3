"""The pace in company: no bucket explains the refusals, so others draw from it, too.

Or the host fails now and then whatever the pace: then slowing down further and further would help nobody.
Growth that is even in time and a cut at each refusal lead to equal shares: who sends more is refused more often
(Chiu and Jain, 1989). One's own share, held as if it were a limit, would freeze whatever came first.
"""

from collections import deque
from math import exp

# A share of the rate, a second; and what a refusal leaves of it.
GROWTH, CUT = 0.04, 0.6
# Of the last OF refusals, so many contradicted those before them.
STRANGE, OF = 3, 6
# Requests a second, below which refusals are too few to tell company by.
LEAST = 1.0


class SharePace:
    def __init__(self) -> None:
        self.is_sharing = False
        self._strange: deque[bool] = deque(maxlen=OF)

    def refused(self, pace: float, is_strange: bool, is_in_vain: bool, measured: float) -> float | None:
        """The rate to go on with, in company or under refusals that no pace avoids; None alone."""
        self._strange.append(is_strange)
        strange = sum(self._strange)
        if not self.is_sharing and (is_in_vain or (strange >= STRANGE and pace > LEAST)):
            self.is_sharing, pace = True, measured
        elif strange == 0 and not is_in_vain:
            self.is_sharing = False
        return pace * CUT if self.is_sharing else None

    def rate(self, pace: float, seconds: float) -> float:
        return pace * exp(GROWTH * seconds)
