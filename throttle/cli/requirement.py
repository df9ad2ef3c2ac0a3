"""A requirement on a report, such as `people.p95<0.3`: what makes a run a test."""

import operator
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(r"\s*(\S+?)\s*(==|!=|<=|>=|<|>)\s*([\d.]+)\s*")


class RequirementError(ValueError):
    """A requirement that asks for nothing there is; one line."""


class Requirement(NamedTuple):
    """A figure of the report compared with a number."""

    figure: str
    """its path in the report; a class's figures begin with the class"""
    sign: str
    number: float

    def is_met(self, figures: Mapping[str, float | None]) -> bool:
        """False also for a figure of which nothing was measured."""
        value = figures.get(self.figure)
        return value is not None and bool(_OPERATORS[self.sign](value, self.number))

    def why_not(self, figures: Mapping[str, float | None]) -> str:
        """For people, when it is not met."""
        value = figures.get(self.figure)
        return f"not met: {self} ({'nothing was measured' if value is None else f'it is {value:g}'})"

    def __str__(self) -> str:
        return f"{self.figure}{self.sign}{self.number:g}"


def requirement(text: str, known: Iterable[str]) -> Requirement:
    """The requirement that a text states, on one of the `known` figures. Raises RequirementError."""
    match = _FORM.fullmatch(text)
    try:
        number = float(match[3]) if match else None
    except ValueError:
        number = None
    if match is None or number is None:
        raise RequirementError(f"--require {text!r}: FIGURE, a comparison and a number, as in browser.served>=10")
    names = list(known)
    if match[1] not in names:
        raise RequirementError(f"--require {text!r}: no figure {match[1]!r}; there are {', '.join(names)}")
    return Requirement(match[1], match[2], number)
