"""The published lists of addresses in a directory, read again when they change.

Reads files, so never on the request path: `look` is for a thread of its own. What it has read is swapped in as a whole.
A list that can't be read, or has grown old, stays in force as it was, and the log is told once.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from throttle.server.address_ranges import LARGEST, AddressRanges, Range, RangesError, ranges_in
from throttle.server.crawler_operators import LISTS, Operator

logger = logging.getLogger("throttle.verify")

DAY = 86_400
STALE_DAYS = 14.0
FILES = 1000
"""of a directory that are looked at"""

_Seen = tuple[int, int, int]
"""a file's modification time, size and inode"""
UNSEEN: _Seen = (0, 0, 0)
"""of a file that is there, and more can't be told"""


class Listed(NamedTuple):
    """What is known of one operator's addresses."""

    ranges: AddressRanges
    is_complete: bool
    """all of the operator's lists are there, and none is stale: who is in none of them is somebody else"""


class RangeFiles:
    """The lists in `directory`: files named like the keys of `LISTS`, with any ending.

    A list is stale `stale_days` after its file was last written: whoever downloads a list that has not changed must
    touch it. (The time within a list tells when it last changed, which may be years ago.)
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        operators: Iterable[Operator],
        *,
        stale_days: float = STALE_DAYS,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = Path(directory)
        self.by_operator: dict[str, Listed] = {}
        """replaced as a whole; an operator without any list is not in it"""
        self._operators = [operator for operator in operators if operator.lists]
        self._stale_seconds = stale_days * DAY
        self._wall_clock = wall_clock
        self._seen: dict[str, _Seen] = {}
        self._ranges: dict[str, list[Range]] = {}
        """by file name; like `_written`, of the last version that could be read"""
        self._written: dict[str, float] = {}
        self._stale: set[str] = set()
        self._is_missed = False

    def look(self) -> bool:
        """Read what is new; whether anything is different now. Not to be called twice at a time."""
        there = self._files()
        if there is None:
            return self._note_stale()
        changed = False
        for name in self._ranges.keys() - there.keys():
            del self._ranges[name], self._written[name]
            changed = True
        self._seen = {name: seen for name, seen in self._seen.items() if name in there}
        for name, state in there.items():
            if self._seen.get(name) != state:
                self._seen[name] = state
                changed |= self._read(name, state)
        changed |= self._note_stale()
        if changed:
            self.by_operator = self._merged()
        return changed

    def _files(self) -> dict[str, _Seen] | None:
        """The lists in the directory; None where it can't be read, and then nothing has changed."""
        found: dict[str, _Seen] = {}
        try:
            with os.scandir(self.directory) as entries:
                for _, entry in zip(range(FILES), entries, strict=False):
                    if _list_name(entry.name) in LISTS and (state := _state(entry)) is not None:
                        found[entry.name] = state
        except OSError as error:
            if not self._is_missed:
                self._is_missed = True
                logger.warning(
                    "no list of crawlers' addresses can be read from %s (%s); what was read before stays in force",
                    self.directory,
                    error.strerror or error,
                )
            return None
        self._is_missed = False
        return found

    def _read(self, name: str, state: _Seen) -> bool:
        try:
            with (self.directory / name).open("rb") as file:
                ranges = ranges_in(file.read(LARGEST + 1))
        except (OSError, RangesError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            logger.error("%s: %s; what was read before stays in force", self.directory / name, reason)
            return False
        is_new = self._ranges.get(name) != ranges
        # A time to come, as a wrong clock leaves it, would make the list one that never grows old.
        self._ranges[name], self._written[name] = ranges, min(state[0] / 1e9, self._wall_clock())
        return is_new

    def _note_stale(self) -> bool:
        """Whether a list has become stale, or fresh again."""
        now = self._wall_clock()
        stale = {name for name, written in self._written.items() if now - written > self._stale_seconds}
        for name in sorted(stale - self._stale):
            days = (now - self._written[name]) / DAY
            logger.warning(
                "%s is %.0f days old: it still says who a crawler is, and no longer who is none. Is the job that "
                "downloads it still running?",
                self.directory / name,
                days,
            )
        changed = stale != self._stale
        self._stale = stale
        if changed:
            self.by_operator = self._merged()
        return changed

    def _merged(self) -> dict[str, Listed]:
        merged: dict[str, Listed] = {}
        for operator in self._operators:
            names = [name for name in self._ranges if _list_name(name) in operator.lists]
            if names:
                fresh = {_list_name(name) for name in names if name not in self._stale}
                ranges = AddressRanges(one for name in names for one in self._ranges[name])
                merged[operator.name] = Listed(ranges, fresh.issuperset(operator.lists))
        return merged


def _state(entry: os.DirEntry[str]) -> _Seen | None:
    """None for what is no file. One list that can't be looked at must not take the others away, so it has a state."""
    try:
        if not entry.is_file():
            return None
        status = entry.stat()
    except FileNotFoundError:
        return None
    except OSError:  # a link in a circle, or into a closed directory: reading it will say what is wrong
        return UNSEEN
    return status.st_mtime_ns, status.st_size, status.st_ino


def _list_name(file_name: str) -> str:
    return file_name.partition(".")[0]
