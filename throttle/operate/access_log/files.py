"""Which files hold the log, and their lines: plain or compressed, or standard input.

What cannot be opened is told before anything is replayed; what breaks off later loses nothing that was read.
"""

import bz2
import glob
import gzip
import lzma
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import IO, Any

from throttle.operate.access_log.line import Hit, ReadLine, Unread, read_text
from throttle.operate.access_log.named_fields import read_json

LONGEST = 65_536
"""bytes of a line; what is longer is read in pieces, none of which parses"""
PEEKED = 1000
"""lines at a file's beginning among which its first hit is sought"""
SAMPLES = 3

_OPENERS: dict[bytes, tuple[str, Any]] = {
    b"\x1f\x8b": (".gz", gzip.open),
    b"BZh": (".bz2", bz2.open),
    b"\xfd7zXZ": (".xz", lzma.open),
}
_ZSTD = b"\x28\xb5\x2f\xfd"
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)


class InputError(ValueError):
    """A log that cannot be read; one line."""


@dataclass(slots=True)
class Coverage:
    """What could be read, and what not."""

    lines: int = 0
    unread: Counter[Unread] = field(default_factory=Counter)
    samples: list[tuple[str, int, bytes]] = field(default_factory=list)
    """the first lines in no known format: file, number, the line"""
    late: int = 0
    """hits too far out of order, counted at the time of the one before"""
    notes: list[str] = field(default_factory=list)
    is_stopped: bool = False
    """no further line is to be read"""

    @property
    def parsed(self) -> int:
        return self.lines - self.unread[Unread.UNPARSED]


def read_any(line: bytes) -> Hit | Unread:
    """The hit of a line in Common, Combined or JSON."""
    return read_json(line) if line[:1] == b"{" else read_text(line)


def named_files(names: Sequence[str]) -> list[str]:
    """The files that names and patterns stand for, each once. Raises InputError for one that stands for none."""
    found: list[str] = []
    for name in names:
        matches = [name] if name == "-" or os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
        if not matches:
            raise InputError(f"{name}: no such file")
        found += matches
    if found.count("-") > 1:
        raise InputError("-: standard input can be read only once")
    return list({name if name == "-" else os.path.realpath(name): name for name in found}.values())


class LogFile:
    """One file of the log, its first hit known. Raises InputError when it cannot be opened."""

    def __init__(self, name: str, coverage: Coverage, read_line: ReadLine = read_any) -> None:
        self.name = name
        self._coverage = coverage
        self._read_line = read_line
        with ExitStack() as files:
            file = opened(name, files)
            peeked = self._peeked(file)
            # What cannot be opened twice (standard input, a pipe) stays open; of a file nothing is kept.
            self._kept = None if name != "-" and os.path.isfile(name) else (peeked, file, files.pop_all())
        if not peeked:
            coverage.notes.append(f"{name} is empty")
        self.first = next((hit for hit in map(read_line, peeked) if isinstance(hit, tuple)), None)
        """the first hit near its beginning, if there is one"""

    def _peeked(self, file: IO[bytes]) -> list[bytes]:
        """The lines down to the first hit."""
        peeked: list[bytes] = []
        try:
            for line in islice(_lines(file), PEEKED):
                peeked.append(line)
                if isinstance(self._read_line(line), tuple):
                    break
        except _BROKEN as error:
            if not peeked:
                raise InputError(f"{self.name}: {_said(error)}") from None
        return peeked

    def hits(self) -> Iterator[Hit]:
        """The hits in the file's order; lines that are none are counted."""
        coverage, read = self._coverage, self._read_line
        with ExitStack() as files:
            if self._kept is None:
                peeked, file = list[bytes](), opened(self.name, files)
            else:
                peeked, file, kept = self._kept
                files.enter_context(kept)
            number = 0
            try:
                for number, line in enumerate(chain(peeked, _lines(file)), start=1):
                    if coverage.is_stopped:
                        break
                    coverage.lines += 1
                    hit = read(line)
                    if type(hit) is tuple:
                        yield hit
                    else:
                        assert isinstance(hit, Unread)
                        self._count(hit, number, line)
            except KeyboardInterrupt:
                coverage.is_stopped = True
            except _BROKEN as error:
                coverage.notes.append(f"{self.name} broke off after line {number:,}: {_said(error)}")

    def _count(self, why: Unread, number: int, line: bytes) -> None:
        self._coverage.unread[why] += 1
        if why is Unread.UNPARSED and len(self._coverage.samples) < SAMPLES:
            self._coverage.samples.append((self.name, number, line))


def opened(name: str, files: ExitStack) -> IO[bytes]:
    """The file's bytes, unpacked by what it holds; closed with `files`. Raises InputError."""
    try:
        file: IO[bytes] = sys.stdin.buffer if name == "-" else files.enter_context(open(name, "rb"))  # noqa: SIM115
        head: bytes = file.peek(6)  # type: ignore[attr-defined]
    except IsADirectoryError:
        inside = os.path.join(name, "access.log*")
        raise InputError(f"{name}: a directory; name the files in it, such as {inside}") from None
    except OSError as error:
        raise InputError(f"{name}: {_said(error)}") from None
    if head.startswith(_ZSTD):
        raise InputError(f"{name}: packed by zstd, which is not read here; try: zstdcat {name} | throttle replay -")
    for magic, (suffix, unpack) in _OPENERS.items():
        if head.startswith(magic):
            return files.enter_context(unpack(file))
        if head and name.endswith(suffix):
            raise InputError(f"{name}: its name ends in {suffix}, but it is not packed so; rename it, or copy it again")
    return file


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.readline, LONGEST), b"")


def _said(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
