"""What was learned of hosts, where it survives the process: one table, in SQLite or in PostgreSQL.

`rate_memory.py` keeps it; a table only reads and writes rows.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """`at`: when it was last held for true, seconds since 1970; `learned` as `Learned.to_text` writes it."""

    host: str
    at: float
    learned: str


class TableError(Exception):
    """The table cannot be used now. Its text says which, why, and what to do, in one line without a password."""


class Table(Protocol):
    """Used by one thread; several processes may use one table. Raises TableError only."""

    name: str

    def read(self, after: float, rows_max: int) -> list[Row]:
        """The newest, none older than `after`."""

    def write(self, rows: list[Row], forget_before: float) -> None:
        """A row replaces an older one of its host; rows from before `forget_before` go."""
