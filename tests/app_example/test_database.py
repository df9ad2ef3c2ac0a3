from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app_example.database import Database, DatabaseError, prepare

if TYPE_CHECKING:
    from app_example.settings import Settings

START = "import sys, pathlib; from app_example import database; database.prepare(pathlib.Path(sys.argv[1]))"
ROOT = Path(__file__).parents[2]


def counts(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("papers", "users", "posts", "tags", "post_tags")
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def test_the_first_run_makes_the_library(settings: Settings) -> None:
    assert counts(settings.database) == [2986, 5004, 9276, 4949, 82892]


def test_a_second_start_leaves_the_library_as_it_is(own_settings: Settings) -> None:
    database = Database(own_settings.database)
    with database.transaction() as connection:
        connection.execute("INSERT INTO tags (name) VALUES ('mine')")
    database.close()
    prepare(own_settings.database)
    assert counts(own_settings.database)[3] == 4950


def test_workers_that_start_at_once_make_one_library(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite3"
    workers = [subprocess.Popen([sys.executable, "-c", START, str(path)], cwd=ROOT) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert counts(path) == [2986, 5004, 9276, 4949, 82892]


def test_a_killed_first_run_leaves_nothing_and_the_next_makes_the_library(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite3"
    killed = (
        "import os, sys; from pathlib import Path; from app_example import arxiv, database\n"
        "real = arxiv.papers\n"
        "def papers():\n"
        "    for number, paper in enumerate(real()):\n"
        "        if number == 2000: os._exit(9)\n"
        "        yield paper\n"
        "arxiv.papers = papers\n"
        "database.prepare(Path(sys.argv[1]))"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(path)], cwd=ROOT, check=False).returncode == 9
    prepare(path)
    assert counts(path) == [2986, 5004, 9276, 4949, 82892]


@pytest.mark.parametrize("content", [b"no database\n" * 500, os.urandom(16_384)], ids=["text", "noise"])
def test_a_file_that_is_no_database_is_one_error_that_names_it_and_is_not_touched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "library.sqlite3"
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match="Move it away and start again") as caught:
        prepare(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_damaged_database_is_one_error_that_names_it(own_settings: Settings) -> None:
    content = bytearray(own_settings.database.read_bytes())
    content[4096 * 3 : 4096 * 300] = os.urandom(4096 * 297)
    own_settings.database.write_bytes(content)
    with pytest.raises(DatabaseError, match="is damaged"):
        prepare(own_settings.database)


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    with pytest.raises(DatabaseError, match="belongs to another program"):
        prepare(path)


def test_a_database_of_another_version_is_left_alone(own_settings: Settings) -> None:
    with closing(sqlite3.connect(own_settings.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(DatabaseError, match="another version of this site"):
        prepare(own_settings.database)


def test_a_data_directory_that_cannot_be_made_is_one_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="Set APP_EXAMPLE_DATA"):
        prepare(tmp_path / "file" / "library.sqlite3")


def test_a_database_path_that_cannot_be_opened_is_one_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "library.sqlite3").mkdir()
    with pytest.raises(DatabaseError, match="Set APP_EXAMPLE_DATA"):
        prepare(tmp_path / "library.sqlite3")


def test_a_transaction_that_fails_changes_nothing_and_its_connection_serves_again(
    own_settings: Settings,
) -> None:
    database = Database(own_settings.database)

    def fail() -> None:
        with database.transaction() as connection:
            connection.execute("DELETE FROM post_tags")
            connection.execute("INSERT INTO tags (name) VALUES ('cs.dl')")

    with pytest.raises(sqlite3.IntegrityError):
        fail()
    assert len(database._idle) == 1
    with database.connection() as again:
        assert again.execute("SELECT count(*) FROM post_tags").fetchone()[0] == 82892
    database.close()


def test_two_that_ask_at_once_get_two_connections_and_the_next_gets_one_of_them(settings: Settings) -> None:
    database = Database(settings.database)
    with database.connection() as one, database.connection() as other:
        assert one is not other
    with database.connection() as third:
        assert third in (one, other)
    database.close()


def test_the_server_ends_with_one_line_when_the_database_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "library.sqlite3").write_bytes(b"no database\n" * 500)
    ended = subprocess.run(
        [sys.executable, "-m", "uvicorn", "app_example:app", "--port", "0"],
        env={**os.environ, "APP_EXAMPLE_DATA": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"app_example: {tmp_path / 'library.sqlite3'} is damaged or no database")
