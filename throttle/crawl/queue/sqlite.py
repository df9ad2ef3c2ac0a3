"""One job in one SQLite file, for the processes of one machine.

The tables are those that PostgreSQL will have (one schema a job there, one file a job here).

A killed process loses nothing that was recorded. After a power cut the file is whole, but with `durable=False`
(WAL, synchronous=NORMAL) the last transactions may be missing; their URLs are then fetched once more.
`durable=True` (FULL) waits for the disk at each transaction, and loses none.

Leases end by the machine's monotonic clock, which all its processes share. A lease that reaches further than any
lease can is from before a restart of the machine, and void; so is one whose process is gone.
"""

import contextlib
import json
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from throttle.crawl.queue import Added, Claim, Counts, NewUrl, Pending, QueueError, RobotsText
from throttle.crawl.result import Problem, Result, redirects_from, redirects_json

VERSION = 1
APPLICATION_ID = 0x7468726F  # «thro»
BUSY_SECONDS = 30.0
LEASE_SECONDS = 15.0

TABLES = """
CREATE TABLE hosts (
  id BIGINT PRIMARY KEY,
  host TEXT NOT NULL UNIQUE,
  pending BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until DOUBLE PRECISION
);
CREATE INDEX hosts_with_work ON hosts (pending) WHERE pending > 0;
CREATE TABLE urls (
  id BIGINT PRIMARY KEY,
  host_id BIGINT NOT NULL REFERENCES hosts,
  key TEXT NOT NULL UNIQUE,
  url TEXT,
  depth INTEGER NOT NULL,
  found_on TEXT,
  is_done BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX urls_pending ON urls (host_id, id) WHERE NOT is_done;
CREATE TABLE results (
  id BIGINT PRIMARY KEY,
  url_id BIGINT NOT NULL UNIQUE REFERENCES urls,
  status INTEGER,
  problem TEXT,
  detail TEXT,
  final_url TEXT,
  redirects TEXT,
  content_type TEXT,
  bytes_read BIGINT NOT NULL,
  is_truncated BOOLEAN NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  tries INTEGER NOT NULL,
  fetched_at DOUBLE PRECISION NOT NULL,
  data TEXT
);
CREATE TABLE robots (
  origin TEXT PRIMARY KEY,
  read_at DOUBLE PRECISION NOT NULL,
  status INTEGER NOT NULL,
  text BYTEA NOT NULL,
  failing_since DOUBLE PRECISION
);
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIEW crawled AS
  SELECT coalesce(u.url, u.key) AS url, r.status, r.problem, r.detail, coalesce(r.final_url, u.key) AS final_url,
    r.redirects, r.content_type, r.bytes_read, r.seconds, r.tries, r.fetched_at, u.depth, u.found_on, h.host, r.data
  FROM results r JOIN urls u ON u.id = r.url_id JOIN hosts h ON h.id = u.host_id;
""".replace("id BIGINT PRIMARY KEY", "id INTEGER PRIMARY KEY")  # SQLite numbers rows by that name only

RESULT = """SELECT r.id, u.id, coalesce(u.url, u.key), h.host, r.status, r.problem, r.detail, r.final_url, r.redirects,
  r.content_type, r.bytes_read, r.is_truncated, r.seconds, r.tries, r.fetched_at, u.depth, u.found_on, r.data
FROM results r JOIN urls u ON u.id = r.url_id JOIN hosts h ON h.id = u.host_id
WHERE r.id > ? ORDER BY r.id LIMIT ?"""


class SqliteQueue:
    """`path` is made if it is not there. `clock` is for tests."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durable: bool = False,
        lease_seconds: float = LEASE_SECONDS,
        busy_seconds: float = BUSY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self.lease_seconds = lease_seconds
        self._busy_seconds = busy_seconds
        self._clock = clock
        self._owner = f"{_process_space()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._host_ids: dict[str, int] = {}
        with self._told():
            self._db = sqlite3.connect(self.path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
            self._open(durable)

    def _open(self, durable: bool) -> None:
        db = self._db
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise QueueError(f"{self.path}: a SQLite file of something else; name another file for the job")
        if application == APPLICATION_ID and version != VERSION:
            raise QueueError(f"{self.path}: a job of another version of throttle ({version}); name another file")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        db.execute("PRAGMA cache_size=-16000")
        with self._transaction():
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in TABLES.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id={APPLICATION_ID}")
                db.execute(f"PRAGMA user_version={VERSION}")

    # -- URLs in

    def add(self, urls: Sequence[NewUrl]) -> Added:
        with self._transaction():
            return self._add(urls)

    def _add(self, urls: Sequence[NewUrl]) -> Added:
        per_host: dict[int, int] = {}
        malformed: list[Result] = []
        new = 0
        for one in urls:
            host_id = self._host_id(one.host)
            url = one.url if one.url != one.key else None
            row = (host_id, one.key, url, one.depth, one.found_on or None, bool(one.problem))
            cursor = self._db.execute(_INSERT_URL, row)
            if cursor.rowcount < 1:
                continue
            new += 1
            if one.problem:
                url_id = cursor.lastrowid or 0
                result = Result(one.url, problem=Problem.MALFORMED, detail=one.problem, url_id=url_id)
                self._db.execute(_INSERT_RESULT, _result_row(url_id, result))
                malformed.append(result)
            else:
                per_host[host_id] = per_host.get(host_id, 0) + 1
        self._db.executemany(
            "UPDATE hosts SET pending = pending + ? WHERE id = ?", [(count, one) for one, count in per_host.items()]
        )
        return Added(new, len(urls) - new, per_host, malformed)

    def _host_id(self, host: str) -> int:
        known = self._host_ids.get(host)
        if known is None:
            self._db.execute("INSERT INTO hosts (host) VALUES (?) ON CONFLICT DO NOTHING", (host,))
            known = self._db.execute("SELECT id FROM hosts WHERE host = ?", (host,)).fetchone()[0]
            if len(self._host_ids) >= 100_000:
                self._host_ids.clear()
            self._host_ids[host] = known
        return known

    # -- who does what

    def claim(self, hosts_max: int, window: int) -> list[Claim]:
        with self._transaction():
            now = self._clock()
            self._free_the_dead(now)
            found = self._db.execute(
                "SELECT id, host, pending FROM hosts WHERE pending > 0"
                " AND (lease_owner IS NULL OR lease_until <= ? OR lease_until > ?) ORDER BY pending DESC LIMIT ?",
                (now, now + 10 * self.lease_seconds, hosts_max),
            ).fetchall()
            self._db.executemany(
                "UPDATE hosts SET lease_owner = ?, lease_until = ? WHERE id = ?",
                [(self._owner, now + self.lease_seconds, host_id) for host_id, _, _ in found],
            )
            return [Claim(host_id, host, pending, self._next(host_id, 0, window)) for host_id, host, pending in found]

    def load(self, wanted: Iterable[tuple[int, int]], at_most: int) -> dict[int, list[Pending]]:
        with self._told():
            return {host_id: self._next(host_id, after_id, at_most) for host_id, after_id in wanted}

    def _next(self, host_id: int, after_id: int, at_most: int) -> list[Pending]:
        rows = self._db.execute(
            "SELECT id, coalesce(url, key), depth, coalesce(found_on, '') FROM urls"
            " WHERE host_id = ? AND id > ? AND NOT is_done ORDER BY id LIMIT ?",
            (host_id, after_id, at_most),
        )
        return [Pending(*row) for row in rows]

    def _free_the_dead(self, now: float) -> None:
        """What a process that is gone held is free at once, not only when its lease ends."""
        owners = self._db.execute(
            "SELECT DISTINCT lease_owner FROM hosts WHERE pending > 0 AND lease_owner IS NOT NULL AND lease_until > ?",
            (now,),
        ).fetchall()
        for (owner,) in owners:
            if owner != self._owner and _is_gone(owner):
                self._db.execute("UPDATE hosts SET lease_owner = NULL WHERE lease_owner = ?", (owner,))

    def renew(self) -> set[int]:
        with self._transaction():
            self._db.execute(
                "UPDATE hosts SET lease_until = ? WHERE lease_owner = ?",
                (self._clock() + self.lease_seconds, self._owner),
            )
            rows = self._db.execute("SELECT id FROM hosts WHERE lease_owner = ?", (self._owner,))
            return {host_id for (host_id,) in rows}

    def release(self, host_ids: Iterable[int]) -> None:
        with self._transaction():
            self._db.executemany(
                "UPDATE hosts SET lease_owner = NULL WHERE id = ? AND lease_owner = ?",
                [(host_id, self._owner) for host_id in host_ids],
            )

    # -- results

    def record(
        self, results: Sequence[Result], urls: Sequence[NewUrl] = (), robots: Sequence[RobotsText] = ()
    ) -> tuple[list[Result], Added]:
        recorded = []
        with self._transaction():
            self._db.executemany("REPLACE INTO robots VALUES (?, ?, ?, ?, ?)", robots)
            for result in results:
                cursor = self._db.execute(
                    "UPDATE urls SET is_done = TRUE WHERE id = ? AND NOT is_done RETURNING host_id", (result.url_id,)
                )
                row = cursor.fetchone()
                if row is None:
                    continue  # another worker, to whom its lease had passed, was first
                self._db.execute("UPDATE hosts SET pending = pending - 1 WHERE id = ?", row)
                self._db.execute(_INSERT_RESULT, _result_row(result.url_id, result))
                recorded.append(result)
            added = self._add(urls)
        return recorded, added

    def last_recorded(self) -> int:
        with self._told():
            (number,) = self._db.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()
            return int(number)

    def recorded(self, after_id: int, at_most: int) -> list[tuple[int, Result]]:
        with self._told():
            return [(row[0], _result(row)) for row in self._db.execute(RESULT, (after_id, at_most))]

    def counts(self) -> Counts:
        with self._told():
            (urls,) = self._db.execute("SELECT count(*) FROM urls").fetchone()
            pending, hosts = self._db.execute(
                "SELECT coalesce(sum(pending), 0), count(*) FROM hosts WHERE pending > 0"
            ).fetchone()
            longest = self._db.execute(
                "SELECT host, pending FROM hosts WHERE pending > 0 ORDER BY pending DESC LIMIT 10"
            ).fetchall()
        return Counts(urls, urls - pending, pending, hosts, tuple(longest))

    # -- the rest

    def robots(self, origins: Sequence[str]) -> dict[str, RobotsText]:
        with self._told():
            found = (
                self._db.execute("SELECT * FROM robots WHERE origin = ?", (origin,)).fetchone() for origin in origins
            )
            return {row[0]: RobotsText(*row) for row in found if row is not None}

    def note(self, name: str, value: Any) -> None:
        with self._transaction():
            if value is None:
                self._db.execute("DELETE FROM notes WHERE name = ?", (name,))
            else:
                self._db.execute("REPLACE INTO notes VALUES (?, ?)", (name, json.dumps(value)))

    def noted(self, name: str) -> Any:
        with self._told():
            row = self._db.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
            return None if row is None else json.loads(row[0])

    def close(self) -> None:
        """Gives up all leases, if it still can."""
        with contextlib.suppress(QueueError), self._transaction():
            self._db.execute("UPDATE hosts SET lease_owner = NULL WHERE lease_owner = ?", (self._owner,))
        self._db.close()

    # -- inside

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._host_ids.clear()  # some may have been of hosts that are not there now
                if self._db.in_transaction:  # a full disk has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors, as sentences that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise QueueError(f"{self.path}: {_sentence(error, self._busy_seconds)}") from error


def remove(path: Path) -> None:
    """A job's file, and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


_INSERT_URL = (
    "INSERT INTO urls (host_id, key, url, depth, found_on, is_done) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_INSERT_RESULT = (
    "INSERT INTO results (url_id, status, problem, detail, final_url, redirects, content_type, bytes_read,"
    " is_truncated, seconds, tries, fetched_at, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _result_row(url_id: int, result: Result) -> tuple[object, ...]:
    return (
        url_id,
        result.status,
        None if result.problem is None else result.problem.value,
        result.detail or None,
        None if result.final_url in ("", result.url) else result.final_url,
        redirects_json(result.redirects),
        result.content_type or None,
        result.bytes_read,
        result.is_truncated,
        result.seconds,
        result.tries,
        result.fetched_at,
        None if result.data is None else json.dumps(result.data),
    )


def _result(row: tuple[Any, ...]) -> Result:
    _, url_id, url, host, status, problem, detail, final_url, redirects, content_type, *numbers, found_on, data = row
    bytes_read, is_truncated, seconds, tries, fetched_at, depth = numbers
    return Result(
        url=url,
        host=host,
        status=status,
        problem=None if problem is None else Problem(problem),
        detail=detail or "",
        final_url=final_url or (url if status is not None else ""),
        redirects=redirects_from(redirects),
        content_type=content_type or "",
        bytes_read=bytes_read,
        is_truncated=bool(is_truncated),
        seconds=seconds,
        tries=tries,
        fetched_at=fetched_at,
        depth=depth,
        found_on=found_on or "",
        data=None if data is None else json.loads(data),
        is_earlier=True,
        url_id=url_id,
    )


def _sentence(error: sqlite3.Error, busy_seconds: float) -> str:
    text = str(error)
    if "disk is full" in text or "disk I/O" in text:
        return f"{text}; make room and run the same again: what was recorded is kept, the rest is fetched then"
    if "locked" in text or "busy" in text:
        return f"another process held it for more than {busy_seconds:g} s; end that one, then run the same again"
    if "unable to open" in text or "readonly" in text:
        return f"{text}; the folder must exist and be writable"
    if "not a database" in text or "malformed" in text:
        return f"{text}; name another file for the job"
    return text


def _process_space() -> str:
    """Where a process number means a process: containers that share a disk do not share these."""
    try:
        return f"{os.stat('/proc/self/ns/pid').st_ino}@{socket.gethostname()}"
    except OSError:
        return socket.gethostname()


def _is_gone(owner: str) -> bool:
    space, pid, _ = owner.rsplit("/", 2)
    if space != _process_space():
        return False  # not ours to say; its lease will end
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False
