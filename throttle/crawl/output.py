"""Results as lines: JSON Lines or CSV, written as they come. SQLite is the job's own file."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from throttle.crawl.result import Result


class BusyError(Exception):
    """The message says who has it."""


COLUMNS = (
    "url",
    "status",
    "problem",
    "detail",
    "final_url",
    "redirects",
    "content_type",
    "bytes_read",
    "is_truncated",
    "seconds",
    "tries",
    "fetched_at",
    "depth",
    "found_on",
    "host",
    "is_broken",
)
# A spreadsheet takes a cell that begins with one of these for a formula, whoever wrote it.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def alone_in(path: Path) -> Iterator[TextIO]:
    """The file, emptied. Raises BusyError where another process writes it: each would cut off the other's lines."""
    with path.open("a", encoding="utf-8", newline="") as stream:
        if path.is_file():  # a pipe or a device has no lines to lose
            try:
                _lock(stream)
            except BlockingIOError:
                raise BusyError(f"{path}: another process writes it; name another file, or end that one") from None
            stream.truncate(0)
        yield stream


def _lock(stream: TextIO) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass  # a file system without locks


def json_lines(stream: TextIO) -> Callable[[Result], None]:
    """ASCII only, so that a terminal obeys nothing of it."""

    def write(result: Result) -> None:
        stream.write(json.dumps(result.as_dict()) + "\n")

    return write


def csv_lines(stream: TextIO) -> Callable[[Result], None]:
    """A header, then COLUMNS; redirects as «301 http://... 302 http://...». What looks like a formula gets a quote
    before it."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)

    def write(result: Result) -> None:
        table = result.as_dict()
        table["redirects"] = " ".join(f"{status} {url}" for status, url in table["redirects"])
        writer.writerow([_cell(table[name]) for name in COLUMNS])

    return write


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
