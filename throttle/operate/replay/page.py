"""The report as one HTML file that needs nothing else: readable narrow and wide, light and dark, and on paper.

All that comes from the log is escaped; there is no script.
"""

from collections.abc import Iterator
from html import escape

from throttle.operate.replay.report import Document
from throttle.operate.replay.text import (
    LABELS,
    Table,
    bursts_table,
    classes_table,
    coverage_lines,
    people_line,
    what_if_table,
    worst_table,
)

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --paper: #fff; --line: #d4d9df; --band: #f4f6f8;
  --served: #2f7d4f; --slept: #b7791f; --refused: #b3362b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa4af; --paper: #14171a; --line: #343b43; --band: #1d2126;
    --served: #4cae76; --slept: #d9a441; --refused: #e06a5e; } }
* { box-sizing: border-box; }
body { font: 1rem/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 68rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p { margin: .3rem 0; }
.soft, figcaption { color: var(--soft); }
.verdict { font-size: 1.35rem; margin: 1.4rem 0; padding: .8rem 1rem; border-left: .35rem solid var(--served);
  background: var(--band); }
.verdict.bad { border-color: var(--refused); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .3rem .8rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: .88rem; vertical-align: bottom; }
th:first-child, td:first-child, .word { text-align: left; }
tbody th { color: var(--ink); font-size: 1rem; font-weight: 400; }
code, .sample { font-family: ui-monospace, monospace; font-size: .88rem; overflow-wrap: anywhere; }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: .5rem 1rem; align-items: center; margin: 1rem 0 0; }
.bar { display: flex; height: 1.3rem; background: var(--band); border: 1px solid var(--line); }
.bar span { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.served { background: var(--served); } .refused { background: var(--refused); }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .35rem 0 .9rem; vertical-align: -.05rem;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.key span:first-child { margin-left: 0; }
ul { padding-left: 1.2rem; } li { margin: .35rem 0; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } .scroll { overflow: visible; }
  h2 { break-after: avoid; } tr { break-inside: avoid; } td, th { white-space: normal; } }
"""


def page(report: Document) -> str:
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Document) -> Iterator[str]:
    files = report["coverage"]["files"]
    named = files[0] if len(files) == 1 else f"{len(files)} log files"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Replay of {escape(named)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>What the throttle would have done</h1>\n<p class=soft>{escape(', '.join(files))}</p>"
    if report["interrupted"]:
        yield "<p><strong>Interrupted:</strong> this is what was read until then.</p>"
    people = report["classes"]["browser"]
    yield f'<p class="verdict{" bad" if people["callers_refused"] else ""}">{escape(people_line(report))}</p>'
    yield "<h2>What was read</h2>"
    for line in coverage_lines(report):
        yield f"<p{' class=sample' if line.startswith('  ') else ''}>{escape(line.strip())}</p>"
    yield "<h2>By class</h2>"
    yield from _bars(report)
    yield from _table(classes_table(report["classes"]), words=1)
    yield "<h2>Longest burst of one caller</h2>"
    yield "<p class=soft>Hits within the hit stack's time. An honest burst is over within a minute.</p>"
    yield from _table(bursts_table(report))
    if report["files"]["left_out"]:
        yield "<h2>If static files counted too</h2>"
        yield from _table(classes_table(report["files"]["with_files"]), words=1)
    if report["what_if"]:
        yield "<h2>What half and twice each limit would do</h2>"
        yield "<p class=soft>Requests refused, and in brackets callers hit at least once.</p>"
        yield from _table(what_if_table(report))
    if report["worst_callers"]:
        yield "<h2>Refused most</h2>"
        yield from _table(worst_table(report), words=4)
    yield "<h2>What these figures cannot say</h2>\n<ul>"
    for note in report["notes"]:
        yield f"<li>{escape(note)}</li>"
    yield "</ul>\n</main>\n</body>\n</html>"


def _bars(report: Document) -> Iterator[str]:
    most = max((one["requests"] for one in report["classes"].values()), default=0) or 1
    yield '<div class="bars" aria-hidden="true">'
    for name, one in report["classes"].items():
        spans = "".join(
            f'<span class="{what}" style="width:{100 * one[what] / most:.2f}%"></span>'
            for what in ("served", "refused")
        )
        yield f'<div>{LABELS[name]}</div><div class="bar">{spans}</div>'
    yield "</div>"
    keys = "".join(f'<span class="{what}"></span>{what}' for what in ("served", "refused"))
    yield f'<p class="key soft" aria-hidden="true">{keys}</p>'


def _table(content: Table, words: int = 0) -> Iterator[str]:
    """A table whose last `words` columns hold words, not figures."""
    head, rows = content
    classes = [' class="word"' if place >= len(head) - words else "" for place in range(len(head))]
    yield '<div class="scroll" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col"{kind}>{escape(cell)}</th>' for cell, kind in zip(head, classes, strict=True))
    yield "</tr></thead><tbody>"
    for first, *others in rows:
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(others, classes[1:], strict=True))
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
