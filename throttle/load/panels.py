"""A run in pictures: latency by class over time, what runs and sleeps against its limits, outcomes stacked."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from throttle.load.report import FAILED, REFUSED, SERVED, Counts, Report, percentile
from throttle.plot.picture import Area, Line, Picture, Point, Shape, Text

WIDTH, HEIGHT, MARGIN = 640, 240, 56
FAINT = "#dddddd"
# Told apart by those who see few colours, too (Okabe and Ito, «Color Universal Design», 2008).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c8c00", "#777777", "#882255", "#332288")
OUTCOMES = ((SERVED, "served", "#009e73"), (REFUSED, "refused", "#e69f00"), (FAILED, "failed", "#d55e00"))
BUCKETS = 60
"""points in time, at most"""


class Series(NamedTuple):
    """A named line of a panel, in its units."""

    name: str
    points: Sequence[Point]
    colour: str
    is_dashed: bool = False


def panels(report: Report, seconds: float, title: str) -> list[Picture]:
    """The pictures of one run, each `WIDTH` by `HEIGHT`; that of the counts only where the site told them."""
    step = max(1.0, seconds / BUCKETS)
    drawn = [
        _panel(f"{title}: p95 by class, seconds", latency_series(report, seconds, step), seconds, is_log=True),
        _panel(f"{title}: requests a second", _edges(report, seconds, step), seconds, is_stacked=True),
    ]
    if told := [one for one in report.counts if one.at <= seconds]:
        drawn.append(_panel(f"{title}: in flight and sleeping", list(_counts(told)), seconds))
    return drawn


def latency_series(report: Report, seconds: float, step: float) -> list[Series]:
    """p95 of what was served, by the instants at which it was to begin."""
    series = []
    for number, (kind, tally) in enumerate(report.tallies.items()):
        buckets: dict[int, list[float]] = {}
        for one in tally.samples():
            if one.outcome == SERVED and one.at < seconds:
                buckets.setdefault(int(one.at / step), []).append(one.latency)
        points = [((b + 0.5) * step, percentile(values, 0.95) or 0.0) for b, values in sorted(buckets.items())]
        series.append(Series(kind, points, COLOURS[number % len(COLOURS)]))
    return [one for one in series if one.points]


def _edges(report: Report, seconds: float, step: float) -> list[Series]:
    """Served, then refused, then failed, a second: the upper edge of each."""
    rates = {outcome: [0.0] * math.ceil(seconds / step) for outcome, _, _ in OUTCOMES}
    for tally in report.tallies.values():
        for one in tally.samples():
            if 0 <= one.at < seconds:
                rates[one.outcome][int(one.at / step)] += 1 / step
    below = [0.0] * math.ceil(seconds / step)
    edges = []
    for outcome, name, colour in OUTCOMES:
        below = [low + more for low, more in zip(below, rates[outcome], strict=True)]
        if any(rates[outcome]):
            edges.append(Series(name, [((b + 0.5) * step, rate) for b, rate in enumerate(below)], colour))
    return edges


def _counts(told: Sequence[Counts]) -> Iterator[Series]:
    yield Series("in flight", [(one.at, one.load) for one in told], COLOURS[0])
    limits = [(one.at, float(one.load_max)) for one in told if one.load_max is not None]
    if limits:
        yield Series("its limit for machines", limits, COLOURS[0], is_dashed=True)
        yield Series("sleeping", [(one.at, one.sleeping) for one in told], COLOURS[1])
    beds = [(one.at, float(one.sleeping_max)) for one in told if one.sleeping_max is not None]
    if beds:
        yield Series("its limit", beds, COLOURS[1], is_dashed=True)


# One panel


def _panel(
    title: str, series: Sequence[Series], seconds: float, *, is_log: bool = False, is_stacked: bool = False
) -> Picture:
    values = [y for one in series for _, y in one.points]
    ticks = (_log_ticks if is_log else _ticks)(values or [1.0])
    low, high = (math.log10(ticks[0]), math.log10(ticks[-1])) if is_log else (0.0, ticks[-1])
    left, right, top, bottom = MARGIN, WIDTH - 12, 56, HEIGHT - 28

    def x(at: float) -> float:
        return left + (right - left) * min(at / seconds, 1.0)

    def y(value: float) -> float:
        value = math.log10(max(value, ticks[0])) if is_log else value
        return bottom - (bottom - top) * (value - low) / (high - low)

    shapes: list[Shape] = [Text(left, 16, title, size=13)]
    for tick in ticks:
        shapes += [
            Line([(left, y(tick)), (right, y(tick))], FAINT, 1),
            Text(left - 6, y(tick) + 4, f"{tick:g}", "end"),
        ]
    if is_stacked:
        shapes += _stacked(series, x, y)
    else:
        for one in series:
            points = _wide([(x(at), y(value)) for at, value in one.points])
            shapes.append(Line(points, one.colour, 1.8, one.is_dashed))
    for tick in _ticks([seconds]):
        if tick <= seconds:
            shapes.append(Text(x(tick), HEIGHT - 10, f"{tick:g} s" if tick else "0", "middle"))
    return Picture(WIDTH, HEIGHT, [*shapes, *_legend(series)], title, background="white")


def _stacked(series: Sequence[Series], x: Callable[[float], float], y: Callable[[float], float]) -> Iterator[Shape]:
    below: list[Point] | None = None
    for one in series:
        edge = _wide([(x(at), y(value)) for at, value in one.points])
        floor = below or [(edge[0][0], y(0.0)), (edge[-1][0], y(0.0))]
        yield Area([*edge, *reversed(floor)], one.colour)
        below = edge


def _wide(points: list[Point]) -> list[Point]:
    """A lone point as a dash: a line from it to itself would not be seen."""
    if len(points) > 1:
        return points
    return [(x + aside, y) for x, y in points for aside in (-4.0, 4.0)]


def _legend(series: Sequence[Series]) -> Iterator[Shape]:
    at, down = float(MARGIN), 28.0
    for one in series:
        width = 30 + 6.2 * len(one.name)
        if at + width > WIDTH + 10:
            at, down = float(MARGIN), down + 14
        yield Line([(at, down), (at + 14, down)], one.colour, 3, one.is_dashed)
        yield Text(at + 18, down + 4, one.name, size=11)
        at += width


def _ticks(values: Sequence[float]) -> list[float]:
    """From 0 by round steps to what covers all values."""
    most = max(max(values), 1e-9)
    size = 10 ** math.floor(math.log10(most))
    step = next(size * part for part in (0.2, 0.5, 1, 2) if size * part * 5 >= most)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def _log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around all values."""
    least, most = max(min(values), 1e-4), max(values)
    first = math.floor(math.log10(least))
    last = max(first + 1, math.ceil(math.log10(max(most, least))))
    return [10.0**power for power in range(first, last + 1)]
