"""Lines, dots and words in a plane, drawn as SVG or as a PNG."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal

Point = tuple[float, float]
CSS = "svg text{font:12px system-ui,sans-serif;fill:#333}@media(prefers-color-scheme:dark){svg text{fill:#ddd}}"


class NoPillowError(ImportError):
    def __init__(self) -> None:
        super().__init__("a PNG needs Pillow: pip install 'asgi-throttle[plot]'; or name a file that ends with .html")


@dataclass(slots=True)
class Drawing:
    """Pixels from the upper left corner. Colours are #rrggbb."""

    width: int
    height: int
    lines: list[tuple[list[Point], str, float]] = field(default_factory=list)
    dots: list[tuple[Point, float, str]] = field(default_factory=list)
    words: list[tuple[Point, str, Literal["start", "middle", "end"]]] = field(default_factory=list)

    def line(self, points: list[Point], colour: str, width: float = 1.0) -> None:
        self.lines.append((points, colour, width))

    def dot(self, at: Point, radius: float, colour: str) -> None:
        self.dots.append((at, radius, colour))

    def text(self, at: Point, words: str, anchor: Literal["start", "middle", "end"] = "start") -> None:
        self.words.append((at, words, anchor))

    def svg(self, title: str) -> str:
        """One element, for a page that has CSS."""
        parts = [
            f'<svg viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" role="img"'
            f' xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        ]
        for points, colour, width in self.lines:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')
        for (x, y), radius, colour in self.dots:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>')
        for (x, y), words, anchor in self.words:
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')
        return "".join(parts) + "</svg>"


def save_png(drawings: list[Drawing], path: Path) -> None:
    """One below the other. Raises NoPillowError."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise NoPillowError from None
    scale = 2  # drawn large and made smaller: smooth lines
    width = max(drawing.width for drawing in drawings)
    height = sum(drawing.height for drawing in drawings)
    image = Image.new("RGB", (width * scale, height * scale), "#ffffff")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(12 * scale)
    top = 0
    for drawing in drawings:
        for points, colour, thickness in drawing.lines:
            pen.line([(x * scale, (y + top) * scale) for x, y in points], colour, max(1, round(thickness * scale)))
        for (x, y), radius, colour in drawing.dots:
            box = ((x - radius) * scale, (y - radius + top) * scale, (x + radius) * scale, (y + radius + top) * scale)
            pen.ellipse(box, colour)
        for (x, y), words, anchor in drawing.words:
            where = (x * scale, (y + top) * scale)
            pen.text(where, words, "#333333", font, anchor={"start": "ls", "middle": "ms", "end": "rs"}[anchor])
        top += drawing.height
    image.resize((width, height), Image.Resampling.LANCZOS).save(path, format="PNG")
