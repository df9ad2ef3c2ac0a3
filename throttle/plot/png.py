"""Pictures as one PNG, painted with Pillow, which brings a font of its own."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from throttle.plot.picture import Area, Dot, Line, Picture, Point, Shape, Text

SCALE = 2
DASH = (5.0, 4.0)
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


class NoPillowError(ImportError):
    def __init__(self) -> None:
        super().__init__("a PNG needs Pillow: pip install 'asgi-throttle[plot]'; or name a file that ends with .html")


def png(columns: Sequence[Sequence[Picture]], *, is_reduced: bool = False) -> bytes:
    """Pictures of one size in columns, from the top, `SCALE` times as large; or, reduced, as large as they are and
    smooth. Raises NoPillowError.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise NoPillowError from None
    width = max(picture.width for column in columns for picture in column)
    height = max(picture.height for column in columns for picture in column)
    size = width * len(columns), height * max(map(len, columns))
    image = Image.new("RGB", (size[0] * SCALE, size[1] * SCALE), "white")
    draw = ImageDraw.Draw(image)
    for across, pictures in enumerate(columns):
        for down, picture in enumerate(pictures):
            for shape in picture.shapes:
                _paint(draw, shape, (across * width, down * height))
    if is_reduced:
        image = image.resize(size, Image.Resampling.LANCZOS)
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
        case Dot(x, y, radius, colour):
            draw.ellipse([at((x - radius, y - radius)), at((x + radius, y + radius))], colour)
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
