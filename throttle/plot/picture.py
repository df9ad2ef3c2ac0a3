"""Lines, areas, dots and words in a plane: what is drawn, before anybody knows how."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

INK = "#333333"
Point = tuple[float, float]
"""pixels from the upper left corner"""
Anchor = Literal["start", "middle", "end"]


class Line(NamedTuple):
    points: Sequence[Point]
    colour: str = INK
    width: float = 1.5
    is_dashed: bool = False


class Area(NamedTuple):
    points: Sequence[Point]
    colour: str


class Dot(NamedTuple):
    x: float
    y: float
    radius: float
    colour: str


class Text(NamedTuple):
    x: float
    y: float
    """of the base line"""
    text: str
    anchor: Anchor = "start"
    colour: str = INK
    size: float = 12


Shape = Line | Area | Dot | Text


class Picture(NamedTuple):
    """The later shapes lie on the earlier ones. Colours are #rrggbb."""

    width: int
    height: int
    shapes: Sequence[Shape]
    title: str = ""
    """for those who cannot see it; of an SVG only"""
    background: str | None = None
    """None: the page's"""
