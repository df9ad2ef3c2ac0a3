"""What became of the requests, by class of caller and finding: numbers for reports, and nothing that a caller sent."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from throttle.server.agent_class import CallerClass
from throttle.server.evidence import Finding


class Tally:
    """The counts of one class and finding since the start. In a dry run, of what would have been."""

    __slots__ = ("hung_up", "refused", "served", "slept")

    def __init__(self) -> None:
        self.served = 0
        self.slept = 0
        """of those served and refused, how many had to wait for room"""
        self.hung_up = 0
        """left while they slept"""
        self.refused: Counter[str] = Counter()
        """by the name of the rule"""

    def add(self, other: "Tally") -> None:
        self.served += other.served
        self.slept += other.slept
        self.hung_up += other.hung_up
        self.refused += other.refused

    def as_dict(self) -> dict[str, int | dict[str, int]]:
        return {
            "served": self.served,
            "slept": self.slept,
            "hung_up": self.hung_up,
            "refused": dict(self.refused.most_common()),
        }


Tallies = defaultdict[tuple[CallerClass, Finding], Tally]
"""One for each pair that rules were compiled for: which it is costs a request nothing."""


def counts(tallies: Mapping[tuple[CallerClass, Finding], Tally]) -> dict[str, dict[str, Any]]:
    """By class, every one; and, where something was known beside the agent, the same by finding."""
    wholes = {caller_class: Tally() for caller_class in CallerClass}
    findings: defaultdict[CallerClass, dict[str, Any]] = defaultdict(dict)
    for (caller_class, finding), tally in tallies.items():
        wholes[caller_class].add(tally)
        if finding is not Finding.UNKNOWN:
            findings[caller_class][finding.value] = tally.as_dict()
    return {
        caller_class.value: {**whole.as_dict(), **({"findings": found} if (found := findings[caller_class]) else {})}
        for caller_class, whole in wholes.items()
    }
