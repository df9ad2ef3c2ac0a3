"""A requirement on a report, such as `browser.callers_refused==0`: what makes a replay a test."""

import operator
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from throttle.operate.replay.report import Document

_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(r"\s*([\w.]+)\s*(==|!=|<=|>=|<|>)\s*([\d.]+)\s*")


class RequirementError(ValueError):
    """A requirement that asks for nothing there is; one line."""


class Requirement(NamedTuple):
    """A figure of the report compared with a number."""

    figure: str
    """its path in the document; a class's figures begin with the class"""
    sign: str
    number: float

    def value(self, report: Document) -> float:
        """Raises KeyError when the report has no such figure."""
        return figures(report)[self.figure]

    def is_met(self, report: Document) -> bool:
        return bool(_OPERATORS[self.sign](self.value(report), self.number))

    def __str__(self) -> str:
        return f"{self.figure}{self.sign}{self.number:g}"


def requirement(text: str, report: Document) -> Requirement:
    """The requirement that a text states; `report`, of any replay, says which figures there are.

    Raises RequirementError.
    """
    match = _FORM.fullmatch(text)
    number = None
    if match:
        try:
            number = float(match[3])
        except ValueError:
            number = None
    if match is None or number is None:
        raise RequirementError(
            f"--require {text!r}: FIGURE, a comparison and a number, as in browser.callers_refused==0"
        )
    known = figures(report)
    if match[1] not in known:
        raise RequirementError(f"--require {text!r}: no figure {match[1]!r}; there are {', '.join(known)}")
    return Requirement(match[1], match[2], number)


def figures(report: Document) -> dict[str, float]:
    """All single numbers of a report by their path."""
    with_files = {f"with_files.{name}": one for name, one in report["files"]["with_files"].items()}
    parts = {**report["classes"], "coverage": report["coverage"], "load": report["load"], **with_files}
    return dict(_numbers(parts, ""))


def _numbers(part: dict[str, Any], path: str) -> Iterator[tuple[str, float]]:
    for name, value in part.items():
        if isinstance(value, dict) and name != "refused_by":
            yield from _numbers(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}", value
