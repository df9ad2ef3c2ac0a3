"""What became of the requests, by class of caller: numbers for reports, and nothing that a caller sent."""

from collections import Counter


class Tally:
    """The counts of one class of caller since the start. In a dry run, of what would have been."""

    __slots__ = ("hung_up", "refused", "served", "slept")

    def __init__(self) -> None:
        self.served = 0
        self.slept = 0
        """of those served and refused, how many had to wait for room"""
        self.hung_up = 0
        """left while they slept"""
        self.refused: Counter[str] = Counter()
        """by the name of the rule"""

    def as_dict(self) -> dict[str, int | dict[str, int]]:
        return {
            "served": self.served,
            "slept": self.slept,
            "hung_up": self.hung_up,
            "refused": dict(self.refused.most_common()),
        }
