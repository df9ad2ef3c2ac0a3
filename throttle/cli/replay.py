"""`throttle replay`: what the throttle would have done to yesterday's access log, and to whom."""

import argparse
import gc
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from throttle.cli import DONE, INTERRUPTED, NOT_MET, WRONG_USAGE
from throttle.cli.requirement import RequirementError, requirement
from throttle.operate.access_log.files import Coverage, InputError, LogFile, named_files, read_any
from throttle.operate.access_log.line import UNKNOWN, Hit
from throttle.operate.access_log.named_fields import FormatError, reader_for
from throttle.operate.access_log.order import in_order, sorted_on_disk, within_window
from throttle.operate.replay.page import page
from throttle.operate.replay.replay import STATIC_EXTENSIONS, Replay
from throttle.operate.replay.report import document, figures, pseudonyms
from throttle.operate.replay.text import text
from throttle.server.agent_table import TableError
from throttle.server.config import ConfigError, load
from throttle.server.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="access logs, plain or packed (gzip, bzip2, xz); - for standard input")
    add("--limits", metavar="TOML", help="the site's configuration; else the rules of Connotea")
    add("--format", metavar="STRING", help="the log's format, as Apache (%%h ...) or nginx ($remote_addr ...) write it")
    add("--assume-duration", type=_seconds, metavar="SECONDS", help="for requests whose line tells none")
    add("--exempt-prefix", action="append", default=[], metavar="PATH", help="below it nothing is throttled")
    add(
        "--static-extensions",
        metavar="LIST",
        help="such as .css,.png: requests for such files are left out; 'none' counts them",
    )
    add(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="NETWORK",
        help="whose forwarded addresses are believed",
    )
    add("--unsorted", action="store_true", help="sort the whole log on disk, not only within five minutes")
    add("--no-compare", action="store_true", help="leave out half and twice each limit; takes two thirds of the time")
    add("--worst", type=int, default=20, metavar="N", help="callers named of those refused most (default: 20)")
    add("--show-addresses", action="store_true", help="name addresses as they are logged")
    add("--json", action="store_true", help="print one JSON document")
    add("--html", type=Path, metavar="FILE", help="also write the report as one HTML file")
    add(
        "--require",
        action="append",
        default=[],
        metavar="CONDITION",
        help="such as 'browser.callers_refused==0'; if it does not hold, the exit code is 1",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except (InputError, FormatError, ConfigError, RequirementError, TableError) as error:
        print(f"throttle replay: {error}", file=sys.stderr)
        return WRONG_USAGE


def _run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    extensions = _extensions(arguments.static_extensions)
    blank = document(Replay(settings, static_extensions=extensions), Coverage(), [])
    required = [requirement(stated, figures(blank)) for stated in arguments.require]
    read_line = reader_for(arguments.format) if arguments.format else read_any
    names = named_files(arguments.files)
    if arguments.html is not None:
        _need_writable(arguments.html, names)
    coverage = Coverage()
    logs = [LogFile(name, coverage, read_line) for name in names]
    replay = Replay(
        settings,
        has_load=arguments.assume_duration is not None or any(log.first and log.first[1] != UNKNOWN for log in logs),
        assume_duration=arguments.assume_duration,
        static_extensions=extensions,
        compares=not arguments.no_compare,
    )
    hits = in_order(logs, coverage, sorted_on_disk if arguments.unsorted else within_window)
    with _ctrl_c_stops_reading(coverage), _without_collector():
        is_whole = replay.run(_with_progress(hits, coverage) if sys.stderr.isatty() else hits)
    is_whole = is_whole and not coverage.is_stopped
    if is_whole and not replay.hits:
        raise InputError(_why_nothing(coverage))
    name_of = None if arguments.show_addresses else pseudonyms()
    report = document(replay, coverage, names, is_whole=is_whole, name_of=name_of, worst=max(0, arguments.worst))
    print(json.dumps(report, indent=2, ensure_ascii=False) if arguments.json else text(report), end="")
    if arguments.json:
        print()
    if arguments.html is not None:
        arguments.html.write_text(page(report), encoding="utf-8", errors="replace")
    if not is_whole:
        return INTERRUPTED
    measured = figures(report)
    failed = [one for one in required if not one.is_met(measured)]
    for one in failed:
        print(f"throttle replay: {one.why_not(measured)}", file=sys.stderr)
    return NOT_MET if failed else DONE


def _settings(arguments: argparse.Namespace) -> Settings:
    settings = load(arguments.limits).settings if arguments.limits else Settings()
    if settings.finds_load_max:
        raise ConfigError(
            f'{arguments.limits}: load_max = "auto" cannot be replayed, since a log does not tell what the site could '
            "bear; write a number in its place, such as the one that a running site shows"
        )
    try:
        return replace(
            settings,
            exempt_prefixes=(*(settings.exempt_prefixes or ()), *arguments.exempt_prefix),
            trusted_proxies=(*settings.trusted_proxies, *arguments.trusted_proxy),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _extensions(given: str | None) -> tuple[str, ...]:
    if given is None:
        return STATIC_EXTENSIONS
    if given.strip().lower() in ("", "none"):
        return ()
    return tuple("." + one.strip().lstrip(".").lower() for one in given.split(",") if one.strip(" ."))


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{given!r}: seconds above 0, up to 3600, are needed, such as 0.2")
    return seconds


def _need_writable(path: Path, names: list[str]) -> None:
    """Raises InputError where a page cannot or should not be written, before an hour's work is lost on it."""
    try:
        if path.is_dir():
            raise InputError(f"--html {path}: a directory; name a file")
        if path.exists() and path.stat().st_size and path.read_bytes()[:15].lower() != b"<!doctype html>":
            raise InputError(f"--html {path}: exists and is no HTML page, so it is not overwritten")
        path.touch()
    except OSError as error:
        raise InputError(f"--html {path}: {error.strerror}") from None


@contextmanager
def _ctrl_c_stops_reading(coverage: Coverage) -> Iterator[None]:
    """The first Ctrl-C ends the reading, and what was read is replayed to its end; the second ends that too."""

    def stop(number: int, frame: FrameType | None) -> None:
        is_second, coverage.is_stopped = coverage.is_stopped, True
        # Only an exception ends a read that waits for a pipe.
        if is_second or (frame is not None and frame.f_code is LogFile.hits.__code__):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A replay makes no cycles, and the collector would look at all hits held back again and again: 5 % of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _why_nothing(coverage: Coverage) -> str:
    if not coverage.lines:
        return "; ".join(coverage.notes) or "the log is empty"
    sample = coverage.samples[0] if coverage.samples else None
    where = f"; {sample[0]}, line {sample[1]}, begins {sample[2][:40].decode('latin-1')!a}" if sample else ""
    return f"none of {coverage.lines:,} lines is a request in a known format{where}; --format may name the format"


def _with_progress(hits: Iterator[Hit], coverage: Coverage) -> Iterator[Hit]:
    told = time.monotonic()
    for number, hit in enumerate(hits):
        if number % 10_000 == 0 and time.monotonic() > told + 0.5:
            told = time.monotonic()
            print(f"\r{coverage.lines:,} lines", end="", file=sys.stderr, flush=True)
        yield hit
    print("\r", " " * 30, "\r", sep="", end="", file=sys.stderr, flush=True)
