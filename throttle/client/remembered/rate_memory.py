"""What was learned of hosts outlives the process: a start for the next, never a truth, and never a reason to fail.

A thread reads the table once and writes it now and then; requests meet only what is in memory. What is remembered
ages (`Learned.aged`): with each `HALF_LIFE` the bounds of a limit are held to be twice as wide, and after `KEPT` it
is forgotten. Ages are told by the wall clock, since no other is shared by machines; days do not mind its steps.
"""

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from throttle.client.learned import Learned
from throttle.client.remembered import Row, Table, TableError
from throttle.client.remembered.sqlite import SqliteTable

logger = logging.getLogger("throttle.client")

HALF_LIFE = 7 * 86400.0
"""seconds"""
KEPT = 60 * 86400.0
"""seconds"""
WRITE = 30.0
"""seconds between two writes"""
FIRST_READ = 0.5
"""seconds for which a new client waits for what is remembered; it begins without what comes later"""
ROWS_MAX = 20_000
HOST_LENGTH_MAX = 300

Lessons = Callable[[], dict[str, Learned]]


class RateMemory:
    """Over one table. `lessons` of each watched table of hosts are written every `WRITE` seconds, and at the end."""

    def __init__(self, table: Table, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.table = table
        self._wall_clock = wall_clock
        self._rows: dict[str, Row] = {}
        self._watched: list[weakref.WeakMethod[Lessons]] = []
        self._left: dict[str, Learned] = {}  # of hosts that are no longer in a table of hosts
        self._written: dict[str, str] = {}
        self._is_troubled = False
        self._is_read = threading.Event()
        self._is_closing = threading.Event()
        self._lock = threading.Lock()  # around one write
        self._thread = threading.Thread(target=self._work, name="throttle-memory", daemon=True)
        self._thread.start()
        self._is_read.wait(FIRST_READ)
        atexit.register(self.close)

    def recall(self, host: str) -> Learned | None:
        """As sure as it still is, or None."""
        row = self._rows.get(host)
        known = Learned.from_text(row.learned) if row is not None else None
        if row is None or known is None:
            return None
        return known.aged(max(0.0, self._wall_clock() - row.at) / HALF_LIFE)

    def watch(self, lessons: Lessons) -> None:
        """A bound method; forgotten with its object."""
        self._watched.append(weakref.WeakMethod(lessons))

    def keep(self, host: str, learned: Learned) -> None:
        """The last word on a host that is dropped from memory."""
        self._left[host] = learned

    def close(self) -> None:
        """Write what is new."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        atexit.unregister(self.close)
        self._thread.join(FIRST_READ)
        self.write()

    def write(self) -> None:
        """What has changed, now."""
        with self._lock:
            rows = self._news()
            if rows and self._try(lambda: self.table.write(rows, self._wall_clock() - KEPT)):
                self._written.update((row.host, row.learned) for row in rows)
                self._left.clear()

    def _news(self) -> list[Row]:
        learned = dict(self._left)
        for reference in list(self._watched):
            lessons = reference()
            if lessons is None:
                self._watched.remove(reference)
            else:
                learned.update(lessons())
        now = self._wall_clock()
        texts = {host: known.to_text() for host, known in learned.items() if known.is_sane()}
        return [
            Row(host, now, text)
            for host, text in texts.items()
            if self._written.get(host) != text and len(host) <= HOST_LENGTH_MAX
        ]

    def _work(self) -> None:
        self._try(self._read)
        self._is_read.set()
        while not self._is_closing.wait(WRITE):
            self.write()

    def _read(self) -> None:
        rows = self.table.read(self._wall_clock() - KEPT, ROWS_MAX)
        self._rows = {row.host: row for row in rows}

    def _try(self, action: Callable[[], None]) -> bool:
        """False, and one line for people, where the table is in trouble; the next line when it is new trouble."""
        try:
            action()
        except TableError as error:
            if not self._is_troubled:
                logger.warning("rates are not remembered for now: %s", error)
            self._is_troubled = True
            return False
        self._is_troubled = False
        return True


def rate_memory(named: "str | Path | bool | RateMemory | None") -> RateMemory | None:
    """True: a file in the platform's place for a user's data; a path; postgresql://...; None and False: no memory.

    Raises ImportError where a package is missing, saying which; TypeError or ValueError for what is none of these.
    """
    if named is None or named is False:
        return None
    if isinstance(named, RateMemory):
        return named
    if isinstance(named, str) and named.startswith(("postgresql://", "postgres://")):
        from throttle.client.remembered.postgres import PostgresTable  # only for those who use it

        return RateMemory(PostgresTable(named))
    if named is True:
        from platformdirs import user_data_path

        return RateMemory(SqliteTable(user_data_path("throttle", appauthor=False) / "rates.db"))
    if not isinstance(named, (str, Path)):
        raise TypeError(f"memory= is a path, postgresql://..., True or False, not {named!r:.80}")
    if "://" in str(named):
        raise ValueError(f"memory= knows postgresql://... and paths of files, not {str(named).partition('://')[0]}://")
    return RateMemory(SqliteTable(Path(named)))
