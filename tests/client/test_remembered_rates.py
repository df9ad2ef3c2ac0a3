"""What was learned of a host outlives the process, ages, and never fails a request."""

import logging
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from throttle.client import AsyncThrottledTransport, ThrottledTransport
from throttle.client.hosts import Hosts
from throttle.client.learned import Learned, learned_by, start_from
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.seeking import SeekingPace
from throttle.client.remembered import Row, Table, TableError
from throttle.client.remembered.rate_memory import HALF_LIFE, KEPT, ROWS_MAX, RateMemory, rate_memory
from throttle.client.remembered.sqlite import SqliteTable

LIMIT = Learned(rate=8.0, low=7.5, high=8.4, burst=8.0)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A private server on a unix socket."""
    initdb = shutil.which("initdb") or "/usr/lib/postgresql/15/bin/initdb"
    server = shutil.which("postgres") or str(Path(initdb).parent / "postgres")
    if not Path(initdb).exists() or not Path(server).exists():
        pytest.skip("no PostgreSQL on this machine: apt install postgresql")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    folder = Path(tempfile.mkdtemp(prefix="throttle-pg-", dir="/tmp"))  # a socket's path must be short
    identity = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}  # the server refuses root
    if identity:
        shutil.chown(folder, "nobody")
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **identity}
    try:
        made = subprocess.run([initdb, "-D", folder / "data", "-U", "me", "-A", "trust", "-N"], cwd=folder, **common)
    except OSError as error:
        pytest.skip(f"PostgreSQL cannot be run here: {error}")
    if made.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip("PostgreSQL's initdb does not work here")
    options = ["-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    process = subprocess.Popen([server, *options], cwd=folder, **common)
    try:
        deadline = time.monotonic() + 20
        url = f"postgresql://me@/postgres?host={folder}"
        while True:
            try:
                psycopg.connect(url).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, "PostgreSQL has stopped"
                assert time.monotonic() < deadline, "PostgreSQL does not answer"
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """An empty table of each kind."""
    if request.param == "sqlite":
        return SqliteTable(tmp_path / "rates.db")
    url = request.getfixturevalue("postgres")
    import psycopg

    from throttle.client.remembered.postgres import PostgresTable

    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS throttle_rates")
    return PostgresTable(url)


def test_every_table_gives_back_what_was_written(table: Table) -> None:
    rows = [Row("example.org", 1000.0, LIMIT.to_text()), Row("bücher.example", 2000.0, Learned(3.0).to_text())]
    assert table.read(0.0, 10) == []
    table.write(rows, 0.0)
    assert table.read(0.0, 10) == [rows[1], rows[0]]
    assert table.read(1500.0, 10) == [rows[1]]
    assert table.read(0.0, 1) == [rows[1]]


def test_of_two_processes_the_newer_word_stands_and_old_ones_go(table: Table) -> None:
    table.write([Row("example.org", 2000.0, "new"), Row("old.example", 5.0, "old")], 0.0)
    table.write([Row("example.org", 1000.0, "late")], 10.0)
    assert table.read(0.0, 10) == [Row("example.org", 2000.0, "new")]


def test_two_processes_may_write_at_once(table: Table) -> None:
    table.write([], 0.0)  # made once: two that make it at the same moment are not meant here
    troubles: list[Exception] = []

    def write(turn: int) -> None:
        try:
            for time in range(10):
                table.write([Row(f"{host}.example", float(time), str(turn)) for host in range(20)], 0.0)
        except TableError as error:
            troubles.append(error)

    threads = [threading.Thread(target=write, args=(turn,)) for turn in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles
    assert {row.at for row in table.read(0.0, 100)} == {9.0}


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def test_what_one_process_learned_the_next_begins_with(table: Table) -> None:
    clock = Clock()
    first = RateMemory(table, wall_clock=clock)
    first.keep("example.org", LIMIT)
    first.close()
    second = RateMemory(table, wall_clock=clock)
    assert second.recall("example.org") == LIMIT
    assert second.recall("example.com") is None
    second.close()


def test_what_is_remembered_ages_and_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    memory = RateMemory(SqliteTable(tmp_path / "rates.db"), wall_clock=clock)
    memory.keep("example.org", LIMIT)
    memory.keep("borne.example", Learned(6.0))
    memory.close()

    def later(seconds: float) -> tuple[Learned | None, Learned | None]:
        clock.now += seconds
        memory = RateMemory(SqliteTable(tmp_path / "rates.db"), wall_clock=clock)
        memory.close()
        return memory.recall("example.org"), memory.recall("borne.example")

    known, borne = later(HALF_LIFE)
    assert known == pytest.approx(Learned(8.0, 7.0, 8.8, 8.0))
    assert borne == Learned(3.0)
    known, _ = later(4 * HALF_LIFE)
    assert known == Learned(4.0)  # too unsure to be a limit
    assert later(KEPT)[0] is None


def test_a_clock_set_back_makes_nothing_young(tmp_path: Path) -> None:
    clock = Clock()
    table = SqliteTable(tmp_path / "rates.db")
    table.write([Row("example.org", clock.now + 1e6, LIMIT.to_text())], 0.0)
    memory = RateMemory(table, wall_clock=clock)
    assert memory.recall("example.org") == LIMIT
    memory.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '{"rate":"x"}',
        '{"rate":NaN,"low":0,"high":0,"burst":0}',
        '{"rate":1e9,"low":0,"high":0,"burst":0}',
    ],
)
def test_a_damaged_row_is_no_row(tmp_path: Path, text: str) -> None:
    table = SqliteTable(tmp_path / "rates.db")
    table.write([Row("example.org", time.time(), text)], 0.0)
    memory = RateMemory(table)
    assert memory.recall("example.org") is None
    memory.close()


class BrokenTable:
    name = "broken"

    def __init__(self) -> None:
        self.is_broken = True
        self.rows: list[Row] = []

    def read(self, after: float, rows_max: int) -> list[Row]:
        assert rows_max == ROWS_MAX
        if self.is_broken:
            raise TableError("broken: the disk is full")
        return self.rows

    def write(self, rows: list[Row], forget_before: float) -> None:
        if self.is_broken:
            raise TableError("broken: the disk is full")
        self.rows += rows


def test_trouble_is_told_in_one_line_and_what_was_learned_is_written_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = BrokenTable()
    with caplog.at_level(logging.WARNING, "throttle.client"):
        memory = RateMemory(table)
        memory.keep("example.org", LIMIT)
        memory.write()
        memory.write()
    assert [record.message for record in caplog.records] == [
        "rates are not remembered for now: broken: the disk is full"
    ]
    table.is_broken = False
    memory.close()
    assert [row.host for row in table.rows] == ["example.org"]


def served(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200)


def test_no_request_fails_over_a_file_that_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rates.db"
    path.write_bytes(b"this is no database" * 100)
    with caplog.at_level(logging.WARNING, "throttle.client"):
        transport = ThrottledTransport(memory=str(path), transport=lambda: httpx.MockTransport(served))
        with httpx.Client(transport=transport) as client:
            assert client.get("http://example.org/").status_code == 200
    lines = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert str(path) in lines[0]
    assert "not a database" in lines[0]
    assert path.read_bytes().startswith(b"this is no database")


def test_no_request_waits_for_a_file_that_another_process_has_locked(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    SqliteTable(path).write([], 0.0)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    transport = ThrottledTransport(memory=str(path), transport=lambda: httpx.MockTransport(served))
    assert transport.hosts.host("example.org", 0.0).pace.rate == 2.0
    assert time.monotonic() - began < 1.5
    holder.rollback()
    holder.close()
    transport.close()


def test_a_client_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    first = ThrottledTransport(memory=path, transport=lambda: httpx.MockTransport(served))
    with httpx.Client(transport=first) as client:
        for host in ("example.org", "example.com"):
            client.get(f"http://{host}/")
        first.hosts.host("example.org", 0.0).pace.rate = 17.0
    second = AsyncThrottledTransport(memory=path, transport=lambda: httpx.MockTransport(served))
    assert second.hosts.host("www.example.org", 0.0).pace.rate == pytest.approx(17.0, rel=1e-3)
    assert second.hosts.host("example.net", 0.0).pace.rate == 2.0
    second.hosts.close()


def test_a_host_that_is_dropped_from_the_table_is_remembered() -> None:
    table = BrokenTable()
    table.is_broken = False
    memory = RateMemory(table)
    hosts = Hosts(AimdPace, hosts_max=1, memory=memory)
    hosts.host("a.example", 0.0).has_served = True
    hosts.host("b.example", 1.0)
    memory.close()
    assert [row.host for row in table.rows] == ["a.example"]


def test_the_seeking_pace_holds_a_remembered_limit_and_climbs_when_it_has_risen() -> None:
    pace = SeekingPace(Random(1))
    start_from(pace, LIMIT)
    now = 0.0
    for _ in range(140):
        pace.sent(now, 1)
        pace.served(now + 0.1, now, 1)
        assert pace.rate < 9.0
        now += 1 / pace.rate
    for _ in range(400):
        pace.sent(now, 1)
        pace.served(now + 0.1, now, 1)
        now += 1 / pace.rate
    assert pace.rate > 12.0


def test_a_remembered_limit_that_has_fallen_is_given_up_at_the_first_refusals() -> None:
    pace = SeekingPace(Random(1))
    start_from(pace, LIMIT)
    now = 0.0
    for turn in range(16):
        pace.sent(now, 1)
        if turn % 8 == 7:
            now += 0.1 + pace.dropped(now + 0.1, now, 1, 3.0, 1)
        else:
            pace.served(now + 0.1, now, 1)
            now += 1 / pace.rate
    assert pace.rate < 4.0
    assert learned_by(pace).rate < 4.0


def test_a_plain_pace_begins_at_the_rate_within_its_bounds() -> None:
    pace = AimdPace(rate_max=5.0)
    start_from(pace, LIMIT)
    assert pace.rate == 5.0


def test_memory_may_be_named_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rate_memory(None) is None
    assert rate_memory(False) is None
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    by_default = rate_memory(True)
    assert by_default is not None
    assert by_default.table.name.endswith("rates.db")
    assert str(tmp_path) in by_default.table.name
    by_default.close()
    assert rate_memory(by_default) is by_default


def test_postgres_that_does_not_answer_is_told_without_its_password() -> None:
    pytest.importorskip("psycopg")
    from throttle.client.remembered.postgres import PostgresTable

    table = PostgresTable("postgresql://me:secret@127.0.0.1:1/rates")
    with pytest.raises(TableError) as caught:
        table.read(0.0, 1)
    assert "postgresql://127.0.0.1/rates" in str(caught.value)
    assert "secret" not in str(caught.value)
