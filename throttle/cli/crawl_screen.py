"""What a crawl shows while it runs: a live view on a terminal, a line now and then elsewhere. All on stderr."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from throttle.crawl import CrawlJob, Result
from throttle.crawl.pace_log import PaceLog
from throttle.crawl.progress import Progress
from throttle.crawl.report import what
from throttle.crawl.url_list import printable

if TYPE_CHECKING:
    from rich.console import Console, Group

LIVE_EVERY, FIRST_LINE_AFTER, LINE_EVERY, LOOK_EVERY = 0.5, 1.0, 5.0, 1.0
HOSTS = 10


class CrawlScreen:
    """`shows_broken`: each broken URL is a line of its own."""

    def __init__(self, *, shows_broken: bool, is_quiet: bool = False) -> None:
        is_live = sys.stderr.isatty() and not is_quiet and find_spec("rich") is not None
        self._console = _console() if is_live else None
        self._is_quiet = is_quiet
        self._shows_broken = shows_broken
        self.paces = PaceLog()

    def say(self, line: str) -> None:
        """One line, whatever stands in it."""
        if self._console is not None:
            self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
        else:
            print(printable(line, 4000), file=sys.stderr, flush=True)

    def result(self, result: Result) -> None:
        if self._shows_broken and result.is_broken:
            self.say(f"{what(result)}: {result.url}{f' ({result.detail})' if result.detail else ''}")

    @asynccontextmanager
    async def watching(self, job: CrawlJob) -> AsyncIterator[None]:
        """Shows how far it is, and keeps the paces, while the block lasts."""
        tasks = [asyncio.create_task(self._look(job))]
        if not self._is_quiet:
            show = self._lines(job) if self._console is None else self._live(self._console, job)
            tasks.append(asyncio.create_task(show))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, job: CrawlJob) -> None:
        while True:
            self.look(job)
            await asyncio.sleep(LOOK_EVERY)

    def look(self, job: CrawlJob) -> None:
        progress = job.progress()
        self.paces.look(progress.seconds, (told.host for told in progress.hosts))

    async def _lines(self, job: CrawlJob) -> None:
        await asyncio.sleep(FIRST_LINE_AFTER)
        while True:
            self.say(line(job.progress()))
            await asyncio.sleep(LINE_EVERY)

    async def _live(self, console: "Console", job: CrawlJob) -> None:
        from rich.live import Live

        with Live(console=console, transient=True, auto_refresh=False) as live:
            while True:
                live.update(_drawn(job.progress()), refresh=True)
                await asyncio.sleep(LIVE_EVERY)


def line(progress: Progress) -> str:
    """Such as «1,200 of 75,000 done, 48.2 a second, 12 open, about 25 min left (held up by example.org)»."""
    parts = [f"{progress.done:,} of {progress.total:,} done"]
    parts += ["still reading the list"] * progress.is_reading
    parts += [f"{progress.rate:.1f} a second", f"{progress.in_flight} open"]
    if progress.eta is not None and progress.done < progress.total:
        held = f" (held up by {progress.held_up_by})" if progress.held_up_by else ""
        parts.append(f"about {duration(progress.eta)} left{held}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Such as «12 s», «25 min», «3.1 h»."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < float("inf") else "for ever"


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)


def _drawn(progress: Progress) -> "Group":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold underline")
    for place, head in enumerate(("host", "left", "a second", "open", "refused", "rests", "needs")):
        table.add_column(head, justify="left" if place == 0 else "right", no_wrap=True)
    for host in progress.hosts[:HOSTS]:
        rests = f"{host.rest:.0f} s" if host.rest else ""
        cells = (
            f"{host.left:,}",
            f"{host.rate:.3g}",
            str(host.in_flight),
            str(host.drops),
            rests,
            duration(host.seconds),
        )
        table.add_row(Text(printable(host.name, 40)), *cells)
    bar = ProgressBar(total=max(1, progress.total), completed=progress.done, width=60)
    return Group(Text(line(progress)), bar, table)
