"""The report of one or two runs as one HTML page that needs nothing else."""

import html
from collections.abc import Sequence
from typing import NamedTuple

from throttle.load.panels import panels
from throttle.load.report import COLUMNS, LEGEND, Report
from throttle.plot.svg import svg


class Run(NamedTuple):
    """`title` says how the site stood."""

    title: str
    report: Report
    is_whole: bool = True


_STYLE = """
:root { color-scheme: light; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 86rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15rem .7rem; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(40rem, 100%), 1fr)); gap: 1.5rem; }
svg { max-width: 100%; height: auto; }
"""


def page(runs: Sequence[Run], seconds: float, facts: Sequence[str]) -> str:
    """`facts`: what was sent at what, a line each."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Load test</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Load test</h1>",
            *(f"<p>{html.escape(fact)}</p>" for fact in facts),
            '<div class="runs">',
            *(_run(run, seconds) for run in runs),
            "</div>",
            *(f"<p>{html.escape(line)}</p>" for line in LEGEND),
            "</body>\n</html>\n",
        ]
    )


def _run(run: Run, seconds: float) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in COLUMNS)
    rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in run.report.rows())
    return "\n".join(
        [
            f"<section>\n<h2>{html.escape(run.title)}</h2>",
            "" if run.is_whole else "<p><strong>Interrupted; this is what was measured until then.</strong></p>",
            f'<div class="wide"><table>\n<tr>{head}</tr>',
            *(f"<tr>{cells}</tr>" for cells in rows),
            "</table></div>",
            *(f"<p>{html.escape(line)}</p>" for line in run.report.causes()),
            *(svg(picture) for picture in panels(run.report, seconds, run.title)),
            "</section>",
        ]
    )
