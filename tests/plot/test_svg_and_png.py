"""One picture, written and painted."""

import sys
from io import BytesIO
from xml.etree import ElementTree

import pytest

from throttle.plot.picture import Area, Dot, Line, Picture, Shape, Text
from throttle.plot.png import SCALE, NoPillowError, png
from throttle.plot.svg import svg

SHAPES: list[Shape] = [
    Area([(0, 20), (40, 20), (40, 30)], "#00ff00"),
    Line([(0, 5), (40, 5)], "#0000ff", 2),
    Line([(0, 10), (40, 10)], "#ff00ff", 2, is_dashed=True),
    Dot(30, 15, 3, "#ff0000"),
    Text(2, 38, "<script> & more", "start", "#000000"),
]
PICTURE = Picture(40, 40, SHAPES, "a < b", "white")


def test_an_svg_holds_every_shape_and_escapes_words() -> None:
    root = ElementTree.fromstring(svg(PICTURE))
    kinds = [child.tag.rpartition("}")[2] for child in root]
    assert kinds == ["title", "rect", "polygon", "polyline", "polyline", "circle", "text"]
    assert "".join(root.itertext()).split("\n") == ["", "a < b", "", "", "", "", "", "<script> & more", ""]


def test_an_svg_without_title_or_background_has_neither() -> None:
    assert len(ElementTree.fromstring(svg(Picture(40, 40, [])))) == 0


@pytest.mark.parametrize(("is_reduced", "scale"), [(False, SCALE), (True, 1)])
def test_a_png_has_a_column_for_each_run_and_a_row_for_each_picture(is_reduced: bool, scale: int) -> None:
    image_of = pytest.importorskip("PIL.Image").open
    image = image_of(BytesIO(png([[PICTURE, PICTURE, PICTURE], [PICTURE]], is_reduced=is_reduced)))
    assert image.size == (2 * 40 * scale, 3 * 40 * scale)


def test_a_png_paints_every_shape_where_an_svg_has_it() -> None:
    image_of = pytest.importorskip("PIL.Image").open
    image = image_of(BytesIO(png([[Picture(40, 40, [])], [PICTURE]])))
    colours = {
        point: image.getpixel(((40 + point[0]) * SCALE, point[1] * SCALE))
        for point in [(20, 5), (2, 10), (7, 10), (30, 15), (38, 24), (2, 24)]
    }
    assert colours == {
        (20, 5): (0, 0, 255),
        (2, 10): (255, 0, 255),
        (7, 10): (255, 255, 255),  # between two dashes
        (30, 15): (255, 0, 0),
        (38, 24): (0, 255, 0),
        (2, 24): (255, 255, 255),
    }


def test_without_pillow_a_png_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NoPillowError, match=r"asgi-throttle\[plot\]"):
        png([[PICTURE]])
