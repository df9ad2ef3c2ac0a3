"""The panels of runs as one PNG, painted with Pillow, which brings a font of its own."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from throttle.load.picture import HEIGHT, WIDTH, Area, Line, Point, Shape, Text

SCALE = 2
DASH = (5.0, 4.0)
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png(columns: Sequence[Sequence[Sequence[Shape]]]) -> bytes:
    """Each column is one run's panels, from the top. Needs Pillow."""
    from PIL import Image, ImageDraw

    rows = max(map(len, columns))
    image = Image.new("RGB", (WIDTH * SCALE * len(columns), HEIGHT * SCALE * rows), "white")
    draw = ImageDraw.Draw(image)
    for column, panels in enumerate(columns):
        for row, shapes in enumerate(panels):
            for shape in shapes:
                _paint(draw, shape, (column * WIDTH, row * HEIGHT))
    written = BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def _paint(draw: Any, shape: Shape, origin: Point) -> None:
    def at(point: Point) -> Point:
        return (origin[0] + point[0]) * SCALE, (origin[1] + point[1]) * SCALE

    match shape:
        case Line(points, colour, width, is_dashed):
            for part in _dashes(points) if is_dashed else [points]:
                draw.line([at(point) for point in part], colour, round(width * SCALE), joint="curve")
        case Area(points, colour):
            draw.polygon([at(point) for point in points], colour)
        case Text(x, y, text, anchor, colour, size):
            from PIL import ImageFont

            font = ImageFont.load_default(size * SCALE)
            draw.text(at((x, y)), text, colour, font=font, anchor=_ANCHORS[anchor])


def _dashes(points: Sequence[Point]) -> list[list[Point]]:
    """The strokes of a dashed line."""
    strokes: list[list[Point]] = []
    on, off = DASH
    walked = 0.0
    for (x0, y0), (x1, y1) in pairwise(points):
        length = math.hypot(x1 - x0, y1 - y0)
        along = 0.0
        while along < length:
            phase = (walked + along) % (on + off)
            until = min(length, along + ((on if phase < on else on + off) - phase) + 1e-6)
            if phase < on:
                ends = [(x0 + (x1 - x0) * part / length, y0 + (y1 - y0) * part / length) for part in (along, until)]
                strokes.append(ends)
            along = until
        walked += length
    return strokes
