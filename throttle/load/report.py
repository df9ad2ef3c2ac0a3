"""What came of each class of caller: counts and latencies, as numbers for machines and as rows of a table."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from throttle.load.answer import Answer

COLUMNS = ("class", "offered", "served", "slept", "refused", "failed", "p50", "p95", "p99", "max")
LEGEND = (
    "slept: held back until there was room, whatever came then.",
    "p50 to max: seconds from the planned start to the last byte, of what was served.",
)
SERVED, REFUSED, FAILED = range(3)
LATE_TOLD = 0.05
"""seconds by which the crowd may be late itself before it says so"""
SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


class Sample(NamedTuple):
    """One request that ended."""

    at: float
    """seconds from the start of the traffic to when it was to begin"""
    latency: float
    """seconds from then"""
    outcome: int
    """SERVED, REFUSED or FAILED"""


class Counts(NamedTuple):
    """What a site told of itself; a limit that it does not have is None."""

    at: float
    load: int
    load_max: int | None
    sleeping: int
    sleeping_max: int | None


class Tally:
    """One class of caller."""

    def __init__(self) -> None:
        self.offered = 0
        self.slept = 0
        self.refused: Counter[str] = Counter()
        """by rule"""
        self.failed: Counter[str] = Counter()
        """by cause"""
        self._at, self._latency, self._outcome = array("d"), array("d"), array("b")

    @property
    def served(self) -> int:
        return len(self._at) - self.refused.total() - self.failed.total()

    @property
    def open(self) -> int:
        return self.offered - len(self._at)

    @property
    def latencies(self) -> list[float]:
        """Seconds, one for each request that was served."""
        return self.latencies_between()

    def latencies_between(self, start: float = 0.0, end: float = math.inf) -> list[float]:
        """The same of those that were to begin from `start` on and before `end`."""
        return [one.latency for one in self.samples() if one.outcome == SERVED and start <= one.at < end]

    def samples(self, last: int = 0) -> Iterator[Sample]:
        """All that ended, in that order; or so many of the last."""
        return map(Sample, self._at[-last:], self._latency[-last:], self._outcome[-last:])

    def count(self, answer: Answer, latency: float, at: float) -> None:
        self.slept += answer.slept is not None
        outcome = SERVED
        if answer.refused_by is not None:
            self.refused[answer.refused_by] += 1
            outcome = REFUSED
        elif answer.failed is not None:
            self.failed[answer.failed] += 1
            outcome = FAILED
        self._at.append(at)
        self._latency.append(latency)
        self._outcome.append(outcome)


class Report:
    """A tally for each class, in the order in which they were named or first came."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self.tallies: dict[str, Tally] = {kind: Tally() for kind in kinds}
        self.counts: list[Counts] = []
        """with seconds from the start of the traffic; empty where the site does not tell"""
        self.late = array("d")
        """seconds by which planned requests left too late, for want of this process's time"""

    def offer(self, kind: str) -> None:
        """A request begins."""
        tally = self.tallies.get(kind)
        if tally is None:
            tally = self.tallies[kind] = Tally()
        tally.offered += 1

    def count(self, kind: str, answer: Answer, latency: float, at: float = 0.0) -> None:
        """A request that was offered has ended, `latency` seconds after it was to begin."""
        self.tallies[kind].count(answer, latency, at)

    def rows(self, last: int = 0) -> list[tuple[str, ...]]:
        """The table's cells, under `COLUMNS`; latencies of all, or of so many of the last."""
        rows = []
        for kind, tally in self.tallies.items():
            latencies = sorted(one.latency for one in tally.samples(last) if one.outcome == SERVED)
            counts = (tally.offered, tally.served, tally.slept, tally.refused.total(), tally.failed.total())
            cells = (_seconds(_of_sorted(latencies, share)) for _, share in SHARES)
            rows.append((kind, *map(str, counts), *cells))
        return rows

    def causes(self) -> list[str]:
        """What was not served, a line for each class and way: by which rules, for which causes, how many wait."""
        lines = []
        for kind, tally in self.tallies.items():
            for what, counter in (("refused by", tally.refused), ("failed", tally.failed)):
                if counter:
                    parts = ", ".join(f"{name} {count:,}" for name, count in counter.most_common(8))
                    lines.append(f"{kind}, {what}: {parts}")
            if tally.open:
                lines.append(f"{kind}, unanswered when the traffic ended: {tally.open:,}")
        late = percentile(self.late, 0.99) or 0.0
        if late > LATE_TOLD:
            lines.append(
                f"The crowd itself was late, by {late:.2f} s at p99, which is in all latencies: this machine has too "
                "little time for it."
            )
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
                "latency_seconds": _percentiles(tally.latencies),
            }
            for kind, tally in self.tallies.items()
        }

    def figures(self) -> dict[str, float | None]:
        """What a requirement can name: `CLASS.FIGURE`, blanks in the class's name as _; None of nothing served."""
        figures: dict[str, float | None] = {}
        for kind, tally in self.tallies.items():
            name = kind.replace(" ", "_")
            own: dict[str, float | None] = {
                "offered": tally.offered,
                "served": tally.served,
                "slept": tally.slept,
                "refused": tally.refused.total(),
                "failed": tally.failed.total(),
                "open": tally.open,
                "served_share": tally.served / tally.offered if tally.offered else None,
                **_percentiles(tally.latencies),
            }
            figures |= {f"{name}.{figure}": value for figure, value in own.items()}
        return figures


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed (nearest rank); None of none."""
    return _of_sorted(sorted(values), share)


def _of_sorted(values: Sequence[float], share: float) -> float | None:
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


def _percentiles(latencies: list[float]) -> dict[str, float | None]:
    latencies.sort()
    found = {name: _of_sorted(latencies, share) for name, share in SHARES}
    return {name: None if value is None else round(value, 6) for name, value in found.items()}


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
