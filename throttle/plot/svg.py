"""A picture as one SVG element, to stand in a page. The page's CSS for `svg text` has the last word."""

from collections.abc import Sequence
from html import escape

from throttle.plot.picture import Area, Dot, Line, Picture, Point, Shape, Text


def svg(picture: Picture) -> str:
    """Whatever words it holds are escaped."""
    width, height = picture.width, picture.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img">'
    ]
    if picture.title:
        parts.append(f"<title>{escape(picture.title)}</title>")
    if picture.background is not None:
        parts.append(f'<rect width="{width}" height="{height}" fill="{picture.background}"/>')
    return "\n".join([*parts, *map(_element, picture.shapes), "</svg>"])


def _element(shape: Shape) -> str:
    match shape:
        case Line(points, colour, width, is_dashed):
            dash = ' stroke-dasharray="5 4"' if is_dashed else ""
            return f'<polyline points="{_pairs(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}/>'
        case Area(points, colour):
            return f'<polygon points="{_pairs(points)}" fill="{colour}"/>'
        case Dot(x, y, radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Text(x, y, text, anchor, colour, size):
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size:g}">'
                f"{escape(text)}</text>"
            )


def _pairs(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
