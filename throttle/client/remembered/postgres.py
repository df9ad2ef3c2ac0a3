"""Rates in PostgreSQL: for jobs on several machines, beside what else they keep there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from throttle.client.remembered import Row, TableError

try:
    import psycopg
except ImportError as missing:
    raise ImportError("memory='postgresql://...' needs psycopg: pip install 'asgi-throttle[postgres]'") from missing

PATIENCE = 2
"""whole seconds for a connection, and for each statement"""


class PostgresTable:
    """`url`: postgresql://user:password@host/database; the table is `throttle_rates`. Connected for each use."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    def read(self, after: float, rows_max: int) -> list[Row]:
        with self._connected() as connection:
            found = connection.execute(
                "SELECT host, at, learned FROM throttle_rates WHERE at >= %s ORDER BY at DESC LIMIT %s",
                (after, rows_max),
            )
            return [Row(*row) for row in found]

    def write(self, rows: list[Row], forget_before: float) -> None:
        ordered = sorted(rows, key=lambda row: row.host)  # two processes never wait for each other in a circle
        with self._connected() as connection:
            connection.cursor().executemany(
                "INSERT INTO throttle_rates (host, at, learned) VALUES (%s, %s, %s) ON CONFLICT (host) DO UPDATE"
                " SET at = excluded.at, learned = excluded.learned WHERE excluded.at >= throttle_rates.at",
                [(row.host, row.at, row.learned) for row in ordered],
            )
            connection.execute("DELETE FROM throttle_rates WHERE at < %s", (forget_before,))

    @contextmanager
    def _connected(self) -> "Iterator[psycopg.Connection[Any]]":
        """One transaction."""
        try:
            with psycopg.connect(
                self._url, connect_timeout=PATIENCE, options=f"-c statement_timeout={PATIENCE}s"
            ) as connection:
                if connection.execute("SELECT to_regclass('throttle_rates')").fetchone() == (None,):
                    # Two processes may do so at once, and one of them is told of a duplicate key: it tries again later.
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS throttle_rates"
                        " (host text PRIMARY KEY, at double precision NOT NULL, learned text NOT NULL)"
                    )
                yield connection
        except (psycopg.Error, OSError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise TableError(f"{self.name}: {reason}") from None
