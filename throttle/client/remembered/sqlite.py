"""Rates in a file of SQLite: one machine, any number of processes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from throttle.client.remembered import Row, TableError

PATIENCE = 2.0
"""seconds for which another process may hold the file"""


class SqliteTable:
    """Opened for each use, since that is once in half a minute: no lock is ever kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def read(self, after: float, rows_max: int) -> list[Row]:
        if not self.path.exists():
            return []
        with self._opened() as connection:
            found = connection.execute(
                "SELECT host, at, learned FROM rates WHERE at >= ? ORDER BY at DESC LIMIT ?", (after, rows_max)
            )
            return [Row(str(host), float(at), str(learned)) for host, at, learned in found]

    def write(self, rows: list[Row], forget_before: float) -> None:
        with self._opened() as connection:
            connection.executemany(
                "INSERT INTO rates (host, at, learned) VALUES (?, ?, ?) ON CONFLICT (host) DO UPDATE"
                " SET at = excluded.at, learned = excluded.learned WHERE excluded.at >= rates.at",
                [(row.host, row.at, row.learned) for row in rows],
            )
            connection.execute("DELETE FROM rates WHERE at < ?", (forget_before,))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection, connection:
                connection.execute("CREATE TABLE IF NOT EXISTS rates (host TEXT PRIMARY KEY, at REAL, learned TEXT)")
                yield connection
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            raise TableError(f"{self.path}: {error}; free it, or name another file with memory=") from None
