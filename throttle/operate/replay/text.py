"""The report for a terminal: coverage first, then who would have been refused."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from throttle.operate.replay.report import Document

LABELS = {"browser": "browser", "known_crawler": "known crawler", "assumed_bot": "assumed bot"}


def text(report: Document) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Document) -> Iterator[str]:
    if report["interrupted"]:
        yield "INTERRUPTED: what follows is what was read until then."
        yield ""
    yield from coverage_lines(report)
    yield ""
    yield from table(*classes_table(report["classes"]))
    yield ""
    yield people_line(report)
    yield ""
    yield "Longest burst of one caller, hits within the hit stack's time (honest: over within a minute)"
    yield from table(*bursts_table(report))
    if report["files"]["left_out"]:
        yield ""
        yield "If static files counted too"
        yield from table(*classes_table(report["files"]["with_files"]))
    if report["what_if"]:
        yield ""
        yield "What half and twice each limit would do: requests refused (callers hit)"
        yield from table(*what_if_table(report))
    if report["worst_callers"]:
        yield ""
        yield "Refused most"
        yield from table(*worst_table(report))
    yield ""
    for note in report["notes"]:
        yield f"Note: {note}"


def coverage_lines(report: Document) -> Iterator[str]:
    """What could be read and what not, in words."""
    found, span = report["coverage"], report["span"]
    yield f"Read {found['lines']:,} lines: {found['parsed']:,} parsed, {found['unparsed']:,} in no known format."
    for sample in found["unparsed_samples"]:
        yield f"  {sample['file']}, line {sample['line']:,}: {sample['text']}"
    if span["first"]:
        yield f"From {span['first']} to {span['last']} ({duration(span['seconds'])})."
    left_out = [
        (found["no_request"], "lines without a request"),
        (found["exempt"], "requests for exempt paths (such as /robots.txt)"),
        (report["files"]["left_out"], "requests for static files"),
    ]
    named = [f"{count:,} {what}" for count, what in left_out if count]
    if named:
        yield f"Left out: {', '.join(named)}."


def people_line(report: Document) -> str:
    people = report["classes"]["browser"]
    return f"People hit at least once: {people['callers_refused']:,} of {people['callers']:,} browsers."


def duration(seconds: int) -> str:
    """«3 d 11 h», «2 h 5 min», «40 s»."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


Table = tuple[Sequence[str], list[Sequence[str]]]
"""the head, and rows; the first column is a name, the others are figures"""


def classes_table(classes: dict[str, Any]) -> Table:
    head = ("class", "requests", "refused", "share", "callers", "callers hit", "slept", "served", "refused by")
    return head, [
        (
            LABELS[name],
            f"{one['requests']:,}",
            f"{one['refused']:,}",
            f"{one['refused_share']:.1%}",
            f"{one['callers']:,}",
            f"{one['callers_refused']:,}",
            f"{one['slept']:,}",
            f"{one['served']:,}",
            by_rule(one["refused_by"]),
        )
        for name, one in classes.items()
    ]


def by_rule(refused_by: dict[str, int]) -> str:
    return ", ".join(f"{rule} {count:,}" for rule, count in refused_by.items())


def bursts_table(report: Document) -> Table:
    return ("class", "honest", "longest"), [
        (LABELS[name], _burst(one["honest_burst"]), _burst(one["longest_burst"]))
        for name, one in report["classes"].items()
    ]


def _burst(hits: int) -> str:
    return "1,000 or more" if hits >= 1000 else f"{hits:,}"


def what_if_table(report: Document) -> Table:
    def row(name: str, value: str, classes: dict[str, Any]) -> Sequence[str]:
        return name, value, *(f"{one['refused']:,} ({one['callers_refused']:,})" for one in classes.values())

    rows = [row("as it is", "", report["classes"])]
    rows += [row(one["limit"], f"{one['value']:g}", one["classes"]) for one in report["what_if"]]
    return ("limit", "at", *LABELS.values()), rows


def worst_table(report: Document) -> Table:
    return ("caller", "refused", "class", "agent", "first refused", "refused by"), [
        (
            one["caller"],
            f"{one['refused']:,}",
            LABELS[one["class"]],
            one["agent"],
            one["first_refused"],
            by_rule(one["refused_by"]),
        )
        for one in report["worst_callers"]
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns two blanks apart, figures to the right."""
    every = [head, *rows]
    widths = [max(len(row[place]) for row in every) for place in range(len(head))]
    for row in every:
        cells = [
            cell.rjust(width) if place and _is_figure(every[-1][place]) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() and "T" not in cell
