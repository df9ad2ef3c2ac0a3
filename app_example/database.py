"""The site's SQLite file: made on first run, opened by each thread that needs it.

Rules: a half-made database is never seen (it is made in one transaction of SQLite's own, so a killed start
leaves nothing, and a second worker waits for the first); whatever is wrong with the file is one DatabaseError
that names it and says what to do.
"""

from __future__ import annotations

import math
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

from app_example import arxiv

SCHEMA = (resources.files(__package__) / "schema.sql").read_text("utf-8")
APPLICATION_ID = 0x4C494231  # «LIB1» in the file's header: this site's file, not another program's
SCHEMA_VERSION = 2
BUSY_SECONDS = 30.0  # longer than the first run takes on a slow disk, since another worker may be at it


class DatabaseError(Exception):
    """The database cannot be made or read. The message names the file and says what to do."""


class Database:
    """Connections to one file, lent to one thread at a time and kept for the next.

    There are never more of them than threads that asked at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: deque[sqlite3.Connection] = deque()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading; what was written and not committed is undone at the end."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _open(self.path)
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.rollback()
            self._idle.append(connection)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection for writing: committed at the end, undone if an exception passes."""
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def close(self) -> None:
        """Close every connection that is not lent out."""
        while self._idle:
            self._idle.pop().close()


def prepare(path: Path) -> None:
    """Afterwards the database is there and whole; made from the shipped data if it was not (a second or two).

    Any number of processes may call this at once. Raises DatabaseError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(
            f"cannot make the data directory {path.parent}: {error.strerror}. "
            "Set APP_EXAMPLE_DATA to a directory that you can write to."
        ) from error
    try:
        with closing(_open(path)) as connection:
            _prepare(connection, path)
    except sqlite3.OperationalError as error:
        raise DatabaseError(
            f"cannot open or write {path}: {error}. Set APP_EXAMPLE_DATA to a directory that you can write "
            "to, on a disk with 30 MB to spare."
        ) from error
    except sqlite3.DatabaseError as error:
        raise DatabaseError(
            f"{path} is damaged or no database: {error}. Move it away and start again: "
            "the site makes a new one (papers posted and accounts made here are in the old file only)."
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")  # one process builds; the others wait here
    application_id, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application_id == 0 and version == 0 and not _pragma(connection, "schema_version"):
        _build(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    elif application_id != APPLICATION_ID:
        raise DatabaseError(
            f"{path} belongs to another program. Set APP_EXAMPLE_DATA to a directory of this site's own."
        )
    elif version != SCHEMA_VERSION:
        raise DatabaseError(
            f"{path} was made by another version of this site ({version}, this is {SCHEMA_VERSION}). "
            "Move it away and start again: the site makes a new one."
        )
    elif (fault := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(fault)
    connection.commit()
    connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for each other


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions begin where the code says BEGIN, nowhere else
        check_same_thread=False,  # lent to one thread at a time
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")  # with WAL: a power cut may lose the last post, never the file
    # Not every SQLite is built with mathematics.
    connection.create_function("ln", 1, math.log, deterministic=True)
    connection.create_function("sqrt", 1, math.sqrt, deterministic=True)
    return connection


def _build(connection: sqlite3.Connection) -> None:
    for statement in _statements(SCHEMA):
        connection.execute(statement)
    users: dict[str, int] = {}
    tags: dict[str, int] = {}
    posts = 0
    for paper_id, paper in enumerate(arxiv.papers(), start=1):
        connection.execute(
            "INSERT INTO papers (id, url, title, authors, abstract, doi, posted) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                paper_id,
                paper.url,
                paper.title,
                ", ".join(paper.authors),
                paper.abstract,
                paper.doi,
                paper.posted,
            ),
        )
        tag_ids = [
            _numbered(connection, tags, tag.lower(), "INSERT INTO tags (id, name) VALUES (?, ?)", tag)
            for tag in paper.tags
        ]
        for author in paper.authors:
            name = arxiv.user_name(author)
            new_user = "INSERT INTO users (id, name, full_name, joined) VALUES (?, ?, ?, ?)"
            user_id = _numbered(connection, users, name, new_user, name, author, paper.posted)
            posts += 1
            connection.execute(
                "INSERT INTO posts (id, user_id, paper_id, posted, changed) VALUES (?, ?, ?, ?, ?)",
                (posts, user_id, paper_id, paper.posted, paper.posted),
            )
            connection.executemany(
                "INSERT INTO post_tags (post_id, tag_id) VALUES (?, ?)",
                [(posts, tag_id) for tag_id in tag_ids],
            )
    connection.execute("ANALYZE")


def _numbered(
    connection: sqlite3.Connection, numbers: dict[str, int], key: str, insert: str, *columns: str | int
) -> int:
    """The row number under a key; the first time, the next number, inserted with its columns."""
    if key not in numbers:
        numbers[key] = len(numbers) + 1
        connection.execute(insert, (numbers[key], *columns))
    return numbers[key]


def _statements(script: str) -> Iterator[str]:
    """The statements of an SQL script one by one: executescript() would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
