"""The rate that all workers were told last: the same number for each, whenever each has called."""

from throttle.client.learned import Learned


class ToldRate:
    def __init__(self) -> None:
        self.at = 0
        """µs on the ledger's clock"""
        self.rate = 0.0
        """a second; 0.0: none was told yet"""
        self._before = 0.0

    def hear(self, at: int, rate: float) -> float | None:
        """How many times as long everything takes now that was leased; None for old news."""
        if at <= self.at:
            return None
        factor = self.rate / rate if self.rate else 1.0
        self._before = self.rate or rate
        self.at, self.rate = at, rate
        return factor

    def borne(self, learned: str) -> float:
        """What the host will bear for some time: within a limit's bounds, if one was learned; not one just doubled."""
        known = Learned.from_text(learned)
        if known is None or not known.is_limit:
            return min(self.rate, self._before)
        return max(known.low, min(known.rate, self.rate))
