"""What came of each class of caller: counts and latencies, as numbers for machines and as rows of a table."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from throttle.load.answer import Answer

COLUMNS = ("class", "offered", "served", "slept", "refused", "failed", "p50", "p95", "p99")
LEGEND = (
    "slept: held back until there was room, whatever came then.",
    "p50, p95, p99: seconds from the planned start to the last byte, of what was served.",
)


class Tally:
    """One class of caller."""

    def __init__(self) -> None:
        self.offered = 0
        self.slept = 0
        self.refused: Counter[str] = Counter()
        """by rule"""
        self.failed: Counter[str] = Counter()
        """by cause"""
        self.latencies: list[float] = []
        """seconds, one for each request that was served"""

    @property
    def served(self) -> int:
        return len(self.latencies)

    @property
    def open(self) -> int:
        return self.offered - self.served - self.refused.total() - self.failed.total()


class Report:
    """A tally for each class, in the order in which they were named or first came."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self.tallies: dict[str, Tally] = {kind: Tally() for kind in kinds}

    def offer(self, kind: str) -> None:
        """A request begins."""
        self.tallies.setdefault(kind, Tally()).offered += 1

    def count(self, kind: str, answer: Answer, latency: float) -> None:
        """A request that was offered has ended, `latency` seconds after it was to begin."""
        tally = self.tallies[kind]
        if answer.slept is not None:
            tally.slept += 1
        if answer.refused_by is not None:
            tally.refused[answer.refused_by] += 1
        elif answer.failed is not None:
            tally.failed[answer.failed] += 1
        else:
            tally.latencies.append(latency)

    def rows(self) -> list[tuple[str, ...]]:
        """The table's cells, under `COLUMNS`."""
        return [
            (
                kind,
                *map(str, (t.offered, t.served, t.slept, t.refused.total(), t.failed.total())),
                *(_seconds(percentile(t.latencies, share)) for share in (0.5, 0.95, 0.99)),
            )
            for kind, t in self.tallies.items()
        ]

    def causes(self) -> list[str]:
        """What was not served, a line for each class and way: by which rules, for which causes, how many wait."""
        lines = []
        for kind, tally in self.tallies.items():
            for what, counter in (("refused by", tally.refused), ("failed", tally.failed)):
                if counter:
                    parts = ", ".join(f"{name} {count:,}" for name, count in counter.most_common())
                    lines.append(f"{kind}, {what}: {parts}")
            if tally.open:
                lines.append(f"{kind}, unanswered when the traffic ended: {tally.open:,}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """By class: counts, and `latency_seconds` (None where nothing was served)."""
        return {
            kind: {
                "offered": tally.offered,
                "served": tally.served,
                "slept": tally.slept,
                "refused": dict(tally.refused),
                "failed": dict(tally.failed),
                "open": tally.open,
                "latency_seconds": {
                    name: _rounded(percentile(tally.latencies, share))
                    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
                },
            }
            for kind, tally in self.tallies.items()
        }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed (nearest rank); None of none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows under their columns, for a screen of any kind."""
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in (COLUMNS, *rows))
    )
    return "\n".join(line.rstrip() for line in lines)
