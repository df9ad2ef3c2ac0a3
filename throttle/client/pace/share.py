"""The pace in company: no bucket explains the refusals, so others draw from it, too.

Or the host fails now and then whatever the pace: then slowing down further and further would help nobody.
Growth that is even in time and a cut at each refusal lead to equal shares: who sends more is refused more often
(Chiu and Jain, 1989). One's own share, held as if it were a limit, would freeze whatever came first; so company is
also told by what is fitted refusal after refusal: alone it settles, in company it wanders, since what the others
leave wanders.
"""

# What a refusal leaves of the rate.
CUT = 0.55
# Requests a second that are added each second. Above FAST more, since a refusal is a small share there; below SLOW
# less, since it is a large one. In any case GROWTH_SHARE of the rate: a host that refuses at random must not end it.
GROWTH, FAST, SLOW, GROWTH_SHARE = 0.125, 4.0, 2.5, 0.015
# A limit that moved refuses once and again at once; one bucket explains so many refusals thereafter.
AGREED = 3
# Rates that differ by this factor are others. So many turns from rise to fall or back are company; a limit that moved
# once has one. So many refusals in a row that suggest the same end the count.
OTHER, TURNS, SETTLED = 1.1, 2, 4


class SharePace:
    def __init__(self) -> None:
        self.is_sharing = False
        self._agreed = 0
        self._refusals = 0  # since it began
        self._before = (False, 0)
        self._wander = _Wander()

    def refused(self, pace: float, is_strange: bool, is_settled: bool, likely: float) -> float | None:
        """The rate to go on with, in company or under refusals that no pace avoids; None alone.

        `likely` is the rate that the last refusals suggest by themselves.
        """
        self._before = self.is_sharing, self._agreed
        is_wandering = self._wander.note(likely)
        # Only the second refusal tells a limit that fell; later ones suggest whatever the others have left.
        again = self.is_sharing and is_strange and self._refusals == 1
        self._agreed = 0 if is_strange else self._agreed + 1
        if not self.is_sharing and (is_strange or is_wandering):
            self.is_sharing = True
            self._refusals = 0
        elif self._agreed >= AGREED and is_settled:
            self.is_sharing = False
            self._wander = _Wander()
        if not self.is_sharing:
            return None
        self._refusals += 1
        return min(pace * CUT, likely) if again else pace * CUT

    def recall(self) -> None:
        """The last refusal was none of the pace."""
        self.is_sharing, self._agreed = self._before

    def rate(self, pace: float, seconds: float) -> float:
        growth: float = GROWTH * max(1.0, pace / FAST) ** 0.4 * min(1.0, pace / SLOW)
        return pace + seconds * max(growth, GROWTH_SHARE * pace)


class _Wander:
    """Do the rates that refusals suggest go up and down?"""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._is_rising: bool | None = None
        self._turns = 0
        self._same = 0

    def note(self, rate: float) -> bool:
        if self._rate is None:
            self._rate = rate
        elif self._rate / OTHER <= rate <= OTHER * self._rate:
            self._same += 1
            if self._same >= SETTLED:
                self._turns = 0
        else:
            is_rising = rate > self._rate
            self._turns += self._is_rising is not None and is_rising is not self._is_rising
            self._rate, self._is_rising, self._same = rate, is_rising, 0
        return self._turns >= TURNS
