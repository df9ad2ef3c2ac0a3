"""What every queue promises, shown on the one there is."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from throttle.crawl.queue import NewUrl, QueueError, RobotsText
from throttle.crawl.queue.sqlite import SqliteQueue
from throttle.crawl.result import Problem, Redirect, Result


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.sqlite"


opened: list[SqliteQueue] = []


@pytest.fixture(autouse=True)
def _closes() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


def a_queue(path: Path, clock: Clock | None = None, *, busy_seconds: float = 5.0) -> SqliteQueue:
    queue = SqliteQueue(path, clock=clock or time.monotonic, lease_seconds=15.0, busy_seconds=busy_seconds)
    opened.append(queue)
    return queue


def some(host: str, count: int) -> list[NewUrl]:
    return [NewUrl(f"http://{host}/{number}", f"http://{host}/{number}", host) for number in range(count)]


def test_a_url_that_is_there_already_is_not_added_again(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    assert queue.add(some("a", 3))[:2] == (3, 0)
    assert queue.add(some("a", 5))[:2] == (2, 3)
    assert queue.counts().pending == 5


def test_what_cannot_be_fetched_has_its_result_at_once(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    added = queue.add([NewUrl("mailto:a@b", "mailto:a@b", "", problem="only http and https can be fetched")])
    assert [(result.url, result.problem) for result in added.malformed] == [("mailto:a@b", Problem.MALFORMED)]
    assert queue.counts().pending == 0
    assert [result.detail for _, result in queue.recorded(0, 9)] == ["only http and https can be fetched"]


def test_hosts_with_most_left_are_claimed_first_and_for_one_worker_only(path: Path, clock: Clock) -> None:
    one, other = a_queue(path, clock), a_queue(path, clock)
    one.add(some("few", 2) + some("many", 9) + some("some", 4))
    first = one.claim(2, 3)
    assert [(claim.host, claim.pending, len(claim.first)) for claim in first] == [("many", 9, 3), ("some", 4, 3)]
    assert [claim.host for claim in other.claim(9, 3)] == ["few"]
    assert one.claim(9, 3) == []


def test_the_next_urls_of_a_host_come_in_order_and_without_those_done(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    queue.add(some("a", 10))
    (claim,) = queue.claim(1, 4)
    queue.record([Result("", url_id=claim.first[-1].url_id + 1)])
    loaded = queue.load([(claim.host_id, claim.first[-1].url_id)], 3)
    assert [pending.url for pending in loaded[claim.host_id]] == ["http://a/5", "http://a/6", "http://a/7"]


def test_a_lease_that_is_not_renewed_passes_to_another(path: Path, clock: Clock) -> None:
    one, other = a_queue(path, clock), a_queue(path, clock)
    one.add(some("a", 2))
    (claim,) = one.claim(1, 9)
    clock.now += 10
    assert one.renew() == {claim.host_id}
    clock.now += 14
    assert other.claim(1, 9) == []
    clock.now += 1
    assert len(other.claim(1, 9)) == 1
    assert one.renew() == set()


def test_the_first_result_of_a_url_stands(path: Path, clock: Clock) -> None:
    one, other = a_queue(path, clock), a_queue(path, clock)
    one.add(some("a", 1))
    (pending,) = one.claim(1, 9)[0].first
    clock.now += 60
    other.claim(1, 9)
    assert len(other.record([Result("", status=200, url_id=pending.url_id)])[0]) == 1
    assert one.record([Result("", status=500, url_id=pending.url_id)])[0] == []
    assert [result.status for _, result in one.recorded(0, 9)] == [200]
    assert one.counts().pending == 0


def test_a_lease_of_a_process_that_is_gone_is_free_at_once(path: Path, clock: Clock) -> None:
    a_queue(path).add(some("a", 2))
    probe = (
        "import os, sys; from throttle.crawl.queue.sqlite import SqliteQueue;"
        "SqliteQueue(sys.argv[1]).claim(9, 9); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", probe, str(path)], check=False)
    assert len(a_queue(path).claim(9, 9)) == 1


def test_a_lease_from_before_a_restart_of_the_machine_is_void(path: Path, clock: Clock) -> None:
    one = a_queue(path, clock)
    one.add(some("a", 2))
    one.claim(1, 9)
    clock.now = 3.0  # monotonic clocks begin anew
    assert len(a_queue(path, clock).claim(1, 9)) == 1


def test_a_worker_that_leaves_frees_its_hosts(path: Path, clock: Clock) -> None:
    one = a_queue(path, clock)
    one.add(some("a", 2))
    one.claim(1, 9)
    one.close()
    assert len(a_queue(path, clock).claim(1, 9)) == 1


def test_a_result_comes_back_as_it_was_recorded(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    queue.add([NewUrl("http://a/", "HTTP://a", "a", 2, "http://a/from")])
    told = Result(
        url="HTTP://a",
        host="a",
        status=200,
        problem=Problem.TIMEOUT,
        detail="the body did not end within 3 s",
        final_url="http://b/",
        redirects=(Redirect(301, "http://b/"),),
        content_type="text/html",
        bytes_read=5,
        is_truncated=True,
        seconds=1.5,
        tries=2,
        fetched_at=77.5,
        depth=2,
        found_on="http://a/from",
        data={"title": "Ä"},
        url_id=1,
    )
    queue.record([told])
    told.is_earlier = True
    assert queue.recorded(0, 9) == [(1, told)]


def test_the_links_of_a_page_are_recorded_with_it_or_not_at_all(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    queue.add(some("a", 1))
    with pytest.raises(QueueError):
        queue.record([Result("", url_id=1)], [NewUrl("http://a/new", "http://a/new", None)])  # type: ignore[arg-type]
    assert queue.counts()[:3] == (1, 0, 1)
    assert queue.recorded(0, 9) == []


def test_robots_are_remembered(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    text = RobotsText("http://a", 5.0, 200, b"User-agent: *", None)
    queue.record([], robots=[text])
    assert queue.robots(["http://a", "http://b"]) == {"http://a": text}


def test_a_full_disk_is_told_and_loses_nothing(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock)
    queue.add(some("a", 200))
    pages = queue._db.execute("PRAGMA page_count").fetchone()[0]
    queue._db.execute(f"PRAGMA max_page_count={pages}")
    results = [Result("", status=200, detail="x" * 500, url_id=number) for number in range(1, 101)]
    with pytest.raises(QueueError, match="disk is full; make room and run the same again"):
        queue.record(results)
    queue.close()
    again = a_queue(path, clock)
    assert again.counts()[:3] == (200, 0, 200)
    assert len(again.record(results)[0]) == 100


def test_a_locked_database_is_told(path: Path, clock: Clock) -> None:
    queue = a_queue(path, clock, busy_seconds=0.0)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(QueueError, match="another process held it for more than 0 s"):
        queue.add(some("a", 1))
    blocker.close()
    assert queue.add(some("a", 1)).new == 1


@pytest.mark.parametrize(
    ("content", "message"), [(b"no database at all " * 50, "not a database"), (None, "something else")]
)
def test_a_file_of_something_else_is_told_and_left_alone(
    path: Path, clock: Clock, content: bytes | None, message: str
) -> None:
    if content is None:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE diary (day TEXT)")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(QueueError, match=message):
        a_queue(path, clock)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(QueueError, match="the folder must exist and be writable"):
        a_queue(tmp_path / "nowhere" / "job.sqlite", clock)


def test_the_same_process_may_own_a_lease_twice_over(path: Path, clock: Clock) -> None:
    """Two jobs of one process are two workers: neither is taken for dead, neither for the other."""
    one, other = a_queue(path, clock), a_queue(path, clock)
    one.add(some("a", 1))
    one.claim(9, 9)
    assert other.claim(9, 9) == []
