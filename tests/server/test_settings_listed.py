"""The settings are written down four times, for code, for type checkers, for readers of the code and of the README."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from throttle.server.middleware import ThrottleMiddleware
from throttle.server.settings import Settings, SettingsDict

NAMES = {field.name for field in fields(Settings)}
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def named_in(text: str) -> set[str]:
    """The names between backticks, without a function's arguments."""
    return set(re.findall(r"`(\w+)(?:\([^`]*\))?`", text))


def test_the_keywords_have_the_names_and_types_of_the_settings() -> None:
    assert get_type_hints(SettingsDict) == get_type_hints(Settings)


def test_the_docstring_explains_each_setting() -> None:
    points = re.findall(r"^ *- (.*?)(?=^ *- |\Z)", Settings.__doc__ or "", re.MULTILINE | re.DOTALL)
    explained = set().union(*(named_in(point) for point in points))
    assert explained >= NAMES


def test_the_readme_lists_each_keyword_of_the_middleware_and_no_other() -> None:
    table = README.split("| setting of `ThrottleMiddleware` |")[1].split("\n\n")[0]
    listed = set().union(*(named_in(row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")))
    for_tests = {"clock", "wall_clock", "random"}
    own = set(get_type_hints(ThrottleMiddleware.__init__)) - {"return", "app", "settings"} - for_tests
    assert listed == NAMES | own
