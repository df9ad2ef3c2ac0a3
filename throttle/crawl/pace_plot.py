"""Rate against time, refusals marked: one small plot a host."""

from throttle.crawl.pace_log import Track
from throttle.crawl.url_list import printable
from throttle.plot.picture import Anchor, Dot, Line, Picture, Shape, Text

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 150, 56, 12, 24, 22
SENT, PACE, REFUSED, AXIS = "#2b6cb0", "#a0aec0", "#c53030", "#cccccc"
TOO_SHORT = "The run was too short to tell."
LEGEND = "blue: answers a second; grey: the pace that was kept to; red dots: refusals, the higher the more"


def plot(track: Track, seconds: float) -> Picture:
    """All plots of one job have the same time axis, `seconds` long; each its own scale upwards."""
    shapes: list[Shape] = []
    rates = track.rates()
    refusals = track.refusals()
    top = _round_up(max((rate for _, rate in rates), default=1.0))
    span = max(seconds, 1e-3)

    def at(second: float, rate: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * second / span
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(rate, top) / top

    for part in (0.0, 0.5, 1.0):
        shapes.append(Line([at(0, top * part), at(span, top * part)], AXIS, 1))
        shapes.append(Text(LEFT - 6, at(0, top * part)[1] + 4, f"{top * part:.3g}/s", "end"))
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(span * part, 0)
        anchor: Anchor = "start" if not part else "end" if part == 1 else "middle"
        shapes.append(Text(x, y + 16, _clock(span * part), anchor))
    refused = sum(count for _, count in refusals)
    answers = track.samples[-1].answers if track.samples else 0
    shapes.append(Text(LEFT, 15, f"{printable(track.name, 80)}: {answers:,} answers, {refused:,} refused"))
    if len(track.samples) > 1:
        shapes.append(Line([at(sample.at, sample.pace) for sample in track.samples], PACE, 1))
    if len(rates) > 1:
        shapes.append(Line([at(*one) for one in rates], SENT))
    most = max((count for _, count in refusals), default=1)
    for second, count in refusals:
        x, y = at(second, top * (0.08 + 0.84 * count / most) if most > 1 else top * 0.08)
        shapes.append(Dot(x, y, 3, REFUSED))
    return Picture(WIDTH, HEIGHT, shapes, track.name)


def no_plot() -> Picture:
    """In place of all plots of a run that was too short for any."""
    return Picture(WIDTH, HEIGHT, [Text(LEFT, 15, TOO_SHORT)], TOO_SHORT)


def _round_up(value: float) -> float:
    """1, 2 or 5 times a power of ten."""
    scale = 1e-3
    while True:
        for step in (1.0, 2.0, 5.0):
            if value <= step * scale:
                return step * scale
        scale *= 10


def _clock(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
