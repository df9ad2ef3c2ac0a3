"""`throttle crawl`: many URLs, many hosts, politely within each, and nothing lost."""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from throttle.cli import DONE, INTERRUPTED, NOT_MET, WRONG_USAGE, CommandError
from throttle.cli.crawl_place import default_job
from throttle.cli.crawl_screen import CrawlScreen, duration
from throttle.cli.crawl_settings import UsageError, options_from
from throttle.crawl import CrawlJob, NoContactError, QueueError, Result
from throttle.crawl.fetch import NoClientError, client_library
from throttle.crawl.output import csv_lines, json_lines
from throttle.crawl.queue.sqlite import remove
from throttle.crawl.report import plot_page, plots, report
from throttle.crawl.sources import Sitemaps, is_url, lines_of
from throttle.crawl.tally import Tally
from throttle.crawl.url_list import ListError
from throttle.plot.png import NoPillowError, png

FLUSH_SECONDS = 0.5
SQLITE = (".sqlite", ".sqlite3", ".db")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle crawl` takes."""
    what = parser.add_argument_group("what is fetched").add_argument
    what("sources", nargs="*", metavar="SOURCE", help="a URL, a file with one a line (plain or .gz), or - for stdin")
    what("--sitemap", action="append", default=[], metavar="URL", help="all pages of a sitemap, or of an index of them")
    what("--follow", type=int, default=0, metavar="DEPTH", help="follow links within the sites given, so many deep")
    what("--external", action="store_true", help="with --follow: look at links that lead elsewhere, too")
    what("--head", action="store_true", help="ask with HEAD; who does not know it is asked with GET")
    what("--body-max", type=int, default=5 << 20, metavar="BYTES", help="read no more of a page (default: 5 MiB)")

    how = parser.add_argument_group("manners").add_argument
    contact = "whom a site's owner can write to: an e-mail address or a URL; needed, or $THROTTLE_CONTACT"
    how("--contact", default=os.environ.get("THROTTLE_CONTACT"), metavar="ADDRESS", help=contact)
    how("--max-rate", type=float, metavar="N", help="at most N requests a second, over all hosts")
    how("--min-delay", type=float, default=0.0, metavar="SECONDS", help="between two requests to a host, at least")
    hosts = 'for some hosts: ["example.org"] rate, start, in_flight, min_delay, robots'
    how("--hosts", type=Path, metavar="TOML", help=hosts)
    how("--concurrency", type=int, default=64, metavar="N", help="requests open at once (default: 64)")
    how("--timeout", type=float, default=30.0, metavar="SECONDS", help="for one URL, redirects included (default: 30)")
    how("--deadline", type=float, metavar="SECONDS", help="stop after so long, and say what is left")

    out = parser.add_argument_group("what comes of it").add_argument
    output = "results as they come: .jsonl, .csv or .sqlite; else JSON Lines on stdout, unless that is a terminal"
    out("-o", "--output", type=Path, metavar="FILE", help=output)
    out("--json", action="store_true", help="the summary as JSON on stdout; results only with -o")
    out("--report", type=Path, metavar="HTML", help="one page: what is broken, which hosts were slow, the pace of each")
    out("--plot", type=Path, metavar="FILE", help="rate against time, refusals marked, per host: .png or .html")
    out("--require-ok", action="store_true", help="the exit code is 1 if anything is broken")
    out("--quiet", action="store_true", help="no progress, only the summary")

    kept = parser.add_argument_group("going on").add_argument
    job = "keep the job here; the same again goes on with it (default: a place of its own, until it is done)"
    kept("--job", type=Path, metavar="FILE", help=job)
    kept("--fresh", action="store_true", help="forget what was done of this job")
    kept("--durable", action="store_true", help="each result waits for the disk, so that a power cut loses none")
    parser.epilog = (
        "Exit codes: 0 done; 1 something was required and not met, or is left at the deadline; 2 wrong usage;"
        " 130 interrupted (Ctrl-C ends gently, twice at once). The same command goes on where it stopped."
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        client_library()
        # A crawl makes few cycles and many short-lived objects; looking through them so often is a sixth of its time.
        gc.set_threshold(20_000, 20, 20)
        return _run(_Crawl(arguments).run())
    except (UsageError, NoContactError) as error:
        print(f"throttle crawl: {error}", file=sys.stderr)
        return WRONG_USAGE
    except (QueueError, ListError, NoClientError, NoPillowError) as error:
        raise CommandError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:  # of an output or a report
        told = "; what was recorded is kept, and the same command writes it again"
        raise CommandError(f"{error.filename or 'output'}: {error.strerror}{told}") from None


def _run(work: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it is installed: some 30 % less CPU a URL. With as many sockets as the machine allows."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        from resource import RLIMIT_NOFILE, getrlimit, setrlimit

        setrlimit(RLIMIT_NOFILE, (getrlimit(RLIMIT_NOFILE)[1],) * 2)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


class _Crawl:
    """One run of the command. Raises UsageError for what it can tell before anything is fetched."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._options = options_from(arguments)
        _check(arguments)
        self._is_kept = arguments.job is not None or _is_sqlite(arguments.output)
        self._path: Path | None = arguments.job or (arguments.output if _is_sqlite(arguments.output) else None)
        if self._path is None and "-" not in arguments.sources:
            self._path = default_job(arguments, self._options)
        is_told = arguments.output is None and not arguments.json
        self._screen = CrawlScreen(shows_broken=is_told and sys.stdout.isatty(), is_quiet=arguments.quiet)
        self._tally = Tally()
        self._sitemaps: Sitemaps | None = None
        self._stops = 0

    async def run(self) -> int:
        arguments = self._arguments
        if arguments.fresh and self._path is not None:
            remove(self._path)
        job = CrawlJob(self._urls(), contact=arguments.contact, job=self._path, options=self._options)
        if arguments.sitemap:
            self._sitemaps = Sitemaps(job.hosts, job.user_agent)
        begun = time.monotonic()
        with self._writing() as write, self._interrupted(job):
            async with job, self._screen.watching(job):
                if job.done:
                    self._screen.say(f"going on: {job.done:,} of {job.total:,} URLs have their results")
                async for result in job:
                    write(result)
                    self._tally.add(result)
                    self._screen.result(result)
                self._screen.look(job)
        return self._end(job, time.monotonic() - begun)

    async def _urls(self) -> AsyncIterator[str]:
        for source in self._arguments.sources:
            if is_url(source):
                yield source
            else:
                async for line in lines_of(source):
                    yield line
        if self._sitemaps is not None:
            async for page in self._sitemaps.pages(self._arguments.sitemap):
                yield page

    @contextmanager
    def _writing(self) -> Iterator[Callable[[Result], None]]:
        """Where results go. Those of an earlier run come first, so a file is always whole."""
        output: Path | None = self._arguments.output
        if (output is None and (self._arguments.json or sys.stdout.isatty())) or _is_sqlite(output):
            yield lambda _: None
            return
        with contextlib.ExitStack() as stack:
            stream = sys.stdout
            if output is not None:
                stream = stack.enter_context(output.open("w", encoding="utf-8", newline=""))
            write = csv_lines(stream) if output is not None and output.suffix == ".csv" else json_lines(stream)
            flushed = time.monotonic()

            def write_soon(result: Result) -> None:
                nonlocal flushed
                write(result)
                if time.monotonic() - flushed > FLUSH_SECONDS:
                    stream.flush()
                    flushed = time.monotonic()

            yield write_soon

    @contextmanager
    def _interrupted(self, job: CrawlJob) -> Iterator[None]:
        """The first Ctrl-C, or SIGTERM, ends gently; the second at once."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self._stops += 1
            job.stop(at_once=self._stops > 1)
            if self._stops == 1:
                self._screen.say("stopping: what is open may end; Ctrl-C again stops at once")

        names = (signal.SIGINT, signal.SIGTERM)
        before: dict[signal.Signals, Any] = {}
        for name in names:
            before[name] = signal.signal(name, lambda *_: loop.call_soon_threadsafe(stop))
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    # -- the end

    def _end(self, job: CrawlJob, seconds: float) -> int:
        sentences = self._sentences(job, seconds)
        self._write_pages(job, sentences)
        if job.is_finished and not self._is_kept and self._path is not None:
            remove(self._path)
        notes = self._sitemaps.notes if self._sitemaps is not None else []
        if self._arguments.json:
            table = {
                "schema_version": 1,
                "is_finished": job.is_finished,
                "stopped_by": job.stopped_by,
                "left": job.total - job.done,
                "lines": job.lines,
                "lines_known": job.known,
                "seconds": seconds,
                **self._tally.as_dict(),
                "notes": notes,
            }
            print(json.dumps(table, indent=2))
        for sentence in (*sentences, *notes):
            self._screen.say(sentence)
        if self._stops:
            return INTERRUPTED
        is_met = job.is_finished and not notes and not (self._arguments.require_ok and self._tally.broken)
        return DONE if is_met else NOT_MET

    def _sentences(self, job: CrawlJob, seconds: float) -> list[str]:
        tally = self._tally
        fine = tally.urls - tally.broken - tally.disallowed
        told = [f"{tally.urls:,} URLs in {duration(seconds)}: {fine:,} fine, {tally.broken:,} broken"]
        told[0] += f", {tally.disallowed:,} disallowed by robots.txt" if tally.disallowed else ""
        told[0] += f"; {job.known:,} lines said again what was known" if job.known and not tally.earlier else ""
        kinds = [f"{count:,} × {status}" for status, count in sorted(tally.statuses.items())]
        kinds += [f"{count:,} × {problem}" for problem, count in tally.problems.most_common()]
        told += [", ".join(kinds)] if kinds else []
        if tally.earlier:
            told.append(f"{tally.earlier:,} of them by an earlier run")
        if not job.is_finished:
            why = {"deadline": "the deadline has come", "stop": "stopped"}.get(job.stopped_by or "", "stopped")
            again = "the same command goes on" if self._path is not None else "--job FILE would have kept the job"
            left = job.total - job.done
            told.append(f"{why}: {left:,} {'URL is' if left == 1 else 'URLs are'} left; {again}")
        return told

    def _write_pages(self, job: CrawlJob, sentences: list[str]) -> None:
        arguments, tracks = self._arguments, self._screen.paces.tracks()
        seconds = max((track.samples[-1].at for track in tracks), default=0.0)
        if arguments.report is not None:
            arguments.report.write_text(report(self._tally, tracks, seconds, sentences), encoding="utf-8")
        if arguments.plot is not None and arguments.plot.suffix == ".png":
            arguments.plot.write_bytes(png([plots(tracks, seconds)], is_reduced=True))
        elif arguments.plot is not None:
            arguments.plot.write_text(plot_page(tracks, seconds), encoding="utf-8")


def _is_sqlite(path: Path | None) -> bool:
    return path is not None and path.suffix in SQLITE


def _check(arguments: argparse.Namespace) -> None:
    """What would else be found out after an hour's work."""
    if not (arguments.sources or arguments.sitemap or arguments.job):
        raise UsageError("nothing to crawl: name a URL, a file, - for standard input, or --sitemap")
    for source in arguments.sources:
        if source != "-" and not is_url(source) and not Path(source).exists():
            raise UsageError(f"{source}: no such file (a URL begins with https://)")
    output, kinds = arguments.output, (".jsonl", ".ndjson", ".csv", *SQLITE)
    if output is not None and output.suffix not in kinds:
        raise UsageError(f"-o {output}: its name must end with one of {', '.join(kinds)}")
    if _is_sqlite(output) and arguments.job is not None and arguments.job != output:
        raise UsageError("-o FILE.sqlite is the job's own file: leave --job out, or name the same")
    if arguments.plot is not None and arguments.plot.suffix not in (".png", ".html"):
        raise UsageError(f"--plot {arguments.plot}: its name must end with .png or .html")
    if arguments.plot is not None and arguments.plot.suffix == ".png" and find_spec("PIL") is None:
        raise NoPillowError
    for path in (output, arguments.report, arguments.plot):
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise UsageError(f"{path}: a directory; name a file")
        if path is not None and any(Path(source).resolve() == path.resolve() for source in arguments.sources):
            raise UsageError(f"{path}: is what is read; name another file")
