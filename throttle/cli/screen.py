"""What a run shows: a live table on a terminal, a line now and then elsewhere, the table at the end.

rich draws on terminals only; it honours NO_COLOR.
"""

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TextIO

from throttle.load.report import COLUMNS, LEGEND, Report, plain_table

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

LIVE_EVERY_SECONDS = 0.25
LINE_EVERY_SECONDS = 5.0
LIVE_LATENCIES = 1_000
"""of each class, the last ones are in the live table; all would take longer to sort the more there are"""


class Screen:
    """Writes to one stream, in the manner that suits it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._console = _console(self._stream)

    def say(self, line: str) -> None:
        """One line."""
        print(line, file=self._stream, flush=True)

    def table(self, report: Report) -> None:
        """The table, who was refused by what, and what the columns mean."""
        if self._console is not None:
            self._console.print(_drawn(report))
        else:
            self.say(plain_table(report.rows()))
        for line in (*report.causes(), *LEGEND):
            self.say(line)

    @asynccontextmanager
    async def progress(self, report: Report, seconds: float) -> AsyncIterator[None]:
        """Shows how far the traffic is, while the block lasts."""
        work = self._lines(report, seconds) if self._console is None else self._live(self._console, report, seconds)
        task = asyncio.create_task(work)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _lines(self, report: Report, seconds: float) -> None:
        start = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(LINE_EVERY_SECONDS)
            now = asyncio.get_running_loop().time() - start
            parts = (f"{kind} {tally.served}/{tally.offered}" for kind, tally in report.tallies.items())
            self.say(f"{min(now, seconds):3.0f} s, served of offered: {', '.join(parts)}")

    async def _live(self, console: "Console", report: Report, seconds: float) -> None:
        from rich.live import Live

        start = asyncio.get_running_loop().time()
        # Transient: the table at the end takes its place.
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while True:
                now = asyncio.get_running_loop().time() - start
                live.update(_moving(report, now, seconds), refresh=True)
                await asyncio.sleep(LIVE_EVERY_SECONDS)


def _console(stream: TextIO) -> "Console | None":
    if not stream.isatty() or importlib.util.find_spec("rich") is None:
        return None
    from rich.console import Console

    return Console(file=stream)


def _moving(report: Report, now: float, seconds: float) -> "Group":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = Table.grid(padding=(0, 1))
    text = f"{now:.0f} of {seconds:.3g} s" if now < seconds else "waiting for the last answers"
    bar.add_row(ProgressBar(total=seconds, completed=min(now, seconds), width=40), Text(text))
    return Group(_drawn(report, LIVE_LATENCIES), bar)


def _drawn(report: Report, last: int = 0) -> "Table":
    from rich.table import Table
    from rich.text import Text

    # One space between columns: all of it fits into 80.
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold underline")
    for place, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=True, min_width=len(column))
    for row in report.rows(last):
        table.add_row(*map(Text, row))  # a class may be called [what it likes]
    return table
