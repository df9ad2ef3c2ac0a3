"""Promise 4, no place leaks: one of two uvicorn workers that count together is killed with SIGKILL, under load."""

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.asgi import CHROME, FEED_READER
from tests.uvicorn import Uvicorn, body_of, until

LEASE = 2.0
HELD = 12
"""requests that run when the worker is killed; for no bot is there room then"""


@pytest.fixture
def runtime_folder() -> Iterator[Path]:
    folder = Path("/tmp") / f"throttle-test-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def counts(site: Uvicorn) -> dict[str, int]:
    """What one of the workers, whichever answers, takes for the load of all; and which worker it is."""
    with site.open("/counts", CHROME) as connection:
        told: dict[str, int] = json.loads(body_of(connection))
    return told


def holder(site: Uvicorn) -> int:
    """A worker in which some of the held requests run."""
    for _ in range(1_000):
        if (told := counts(site))["waits"] > 0:
            return told["worker"]
    raise AssertionError("nobody holds any")


class People:
    """Some who ask for pages without a break. A page may be lost with the worker that served it, and fail."""

    def __init__(self, site: Uvicorn) -> None:
        self._site = site
        self._ended = threading.Event()
        self.answered = self.lost = 0
        self._threads = [threading.Thread(target=self._ask_on, args=(number,)) for number in range(4)]
        for thread in self._threads:
            thread.start()

    def _ask_on(self, number: int) -> None:
        pages = 0
        while not self._ended.is_set():
            pages += 1
            try:
                assert self._site.get("/", f"{CHROME} {number} {pages}") == 200
                self.answered += 1
            except OSError:
                self.lost += 1

    def leave(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def test_after_kill_9_of_one_of_two_local_workers_under_load_the_count_is_right_within_the_lease(
    runtime_folder: Path,
) -> None:
    environment = {"TEST_STORE": "local:papers", "TEST_LEASE": str(LEASE), "TEST_LOAD_MAX": str(HELD)}
    site = Uvicorn(
        "tests.server.real_site:app",
        "--workers",
        "2",
        environment={**environment, "XDG_RUNTIME_DIR": str(runtime_folder)},
    )
    with ExitStack() as stack:
        stack.callback(site.close)
        people = People(site)
        stack.callback(people.leave)
        until(lambda: people.answered > 200, "people are served")
        held = [stack.enter_context(site.open("/wait", f"{CHROME} {number}")) for number in range(HELD)]
        until(lambda: counts(site)["load"] >= HELD, "all are counted, wherever they run")
        victim = holder(site)

        os.kill(victim, signal.SIGKILL)
        killed_at = time.monotonic()
        time.sleep(LEASE / 4)
        people.leave()
        left = HELD - sum(map(is_over, held))
        assert left < HELD
        until(lambda: (told := counts(site))["worker"] != victim and told["load"] == left, "the count is right")
        assert time.monotonic() - killed_at <= LEASE + 1
        assert people.lost <= 20
        assert site.get("/", FEED_READER) == 200, "there is room again"

        loads: dict[int, int] = {}

        def both_say_so() -> bool:
            told = counts(site)
            loads[told["worker"]] = told["load"]
            return len(loads) == 2 and set(loads.values()) == {left}

        until(both_say_so, "the worker that was started in its place says so, too")


def is_over(connection: socket.socket) -> bool:
    """The connection was closed at the other end."""
    return bool(select.select([connection], [], [], 0)[0])
