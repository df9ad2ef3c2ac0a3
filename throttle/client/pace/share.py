"""The pace in company: no bucket explains the refusals, so others draw from it, too.

Or the host fails now and then whatever the pace: then slowing down further and further would help nobody.
Growth that is even in time and a cut at each refusal lead to equal shares: who sends more is refused more often
(Chiu and Jain, 1989). One's own share, held as if it were a limit, would freeze whatever came first.
"""

# What a refusal leaves of the rate.
CUT = 0.55
# Requests a second that are added each second. Above FAST more, since a refusal is a small share there; below SLOW
# less, since it is a large one. In any case GROWTH_SHARE of the rate: a host that refuses at random must not end it.
GROWTH, FAST, SLOW, GROWTH_SHARE = 0.13, 4.0, 2.0, 0.015
# A limit that moved refuses once and again at once; one bucket explains so many refusals thereafter.
AGREED = 3


class SharePace:
    def __init__(self) -> None:
        self.is_sharing = False
        self._agreed = 0
        self._before = (False, 0)

    def refused(self, pace: float, is_strange: bool, is_settled: bool, likely: float) -> float | None:
        """The rate to go on with, in company or under refusals that no pace avoids; None alone.

        `likely` is the rate that the last refusals suggest by themselves.
        """
        self._before = self.is_sharing, self._agreed
        again = self.is_sharing and is_strange and self._agreed == 0
        self._agreed = 0 if is_strange else self._agreed + 1
        if is_strange:
            self.is_sharing = True
        elif self._agreed >= AGREED and is_settled:
            self.is_sharing = False
        if not self.is_sharing:
            return None
        return min(pace * CUT, likely) if again else pace * CUT

    def recall(self) -> None:
        """The last refusal was none of the pace."""
        self.is_sharing, self._agreed = self._before

    def rate(self, pace: float, seconds: float) -> float:
        growth: float = GROWTH * max(1.0, pace / FAST) ** 0.8 * min(1.0, pace / SLOW) ** 2
        return pace + seconds * max(growth, GROWTH_SHARE * pace)
