"""Tables for people: plain text that reads as Markdown, a verdict beside each bar."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A stated requirement, and what was measured."""

    what: str
    at_most: float
    measured: float
    unit: str

    @property
    def is_met(self) -> bool:
        return self.measured <= self.at_most

    def __str__(self) -> str:
        verdict = "hit" if self.is_met else "MISSED"
        return f"{verdict}: {self.what}: {self.measured:.3g} {self.unit} (bar: {self.at_most:g})"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *rest = zip(cells, widths, strict=True)
        return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"\n{title}\n", line(head), rule, *map(line, rows)])
