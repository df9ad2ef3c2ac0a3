"""Several workers of a real server share limits, load and sleepers; with a memory store they are told what it does."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.asgi import CHROME, FEED_READER
from throttle.server import processes

ROOT = Path(__file__).parents[2]


class Uvicorn:
    """uvicorn on a port of its own."""

    def __init__(self, app: str, *options: str, environment: dict[str, str]) -> None:
        self.port = servers.free_port()
        words = [sys.executable, "-m", "uvicorn", app, "--port", str(self.port), "--log-level", "warning", *options]
        self.process = subprocess.Popen(
            words, cwd=ROOT, env={**os.environ, **environment}, stderr=subprocess.PIPE, start_new_session=True
        )
        until(self.answers, "the server answers")

    def answers(self) -> bool:
        try:
            return self.get("/robots.txt", CHROME) > 0
        except OSError:
            return False

    def open(self, path: str, agent: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nuser-agent: {agent}\r\n\r\n".encode()
        )
        return connection

    def get(self, path: str, agent: str) -> int:
        """The status."""
        with self.open(path, agent) as connection:
            return status_of(connection)

    def close(self) -> str:
        """Stop it; what it has logged."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=20)[1].decode()


def status_of(connection: socket.socket) -> int:
    head = b""
    while len(head) < 12:
        part = connection.recv(65_536)
        if not part:
            raise ConnectionError("closed without an answer")
        head += part
    return int(head[9:12])


def until(holds: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up, f"waited in vain: {what}"
        time.sleep(0.01)


@contextmanager
def two_sites(kind: str, **environment: str) -> Iterator[tuple[Uvicorn, Uvicorn]]:
    """Two uvicorns on two ports, on one server."""
    given = {"TEST_STORE": f"{servers.shared(kind).url}?site={secrets.token_hex(8)}", **environment}
    with ExitStack() as stack:
        sites = []
        for _ in range(2):
            site = Uvicorn("tests.server.real_site:app", environment=given)
            stack.callback(site.close)
            sites.append(site)
        yield sites[0], sites[1]


@pytest.mark.parametrize("kind", servers.binaries())
def test_two_sites_on_two_ports_share_limits_load_and_sleepers(kind: str) -> None:
    with two_sites(kind, TEST_LOAD_MAX="1") as (one, other):
        assert [site.get("/", CHROME) for site in (one, other) * 5] == [200] * 10
        assert one.get("/", CHROME) == other.get("/", CHROME) == 503

        assert one.get("/", FEED_READER) == 200
        running = one.open("/wait", CHROME + " again")
        until(lambda: b'"load":1' in body(other), "the load is known")
        sleeper = other.open("/", FEED_READER)
        until(lambda: b'"sleeping":1' in body(one), "one sleeps elsewhere")
        running.close()
        assert status_of(sleeper) == 200
        sleeper.close()


def body(site: Uvicorn) -> bytes:
    parts = []
    with site.open("/counts", CHROME) as connection:
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("store", ["redis", "local"])
def test_the_demo_site_with_two_workers_has_one_limit(store: str, tmp_path: Path) -> None:
    environment = {"APP_EXAMPLE_STORE": store, "APP_EXAMPLE_DATA": str(tmp_path)}
    if store == "redis":
        environment["APP_EXAMPLE_STORE"] = f"{servers.shared('valkey').url}?site={secrets.token_hex(8)}"
    else:
        environment["APP_EXAMPLE_STORE"] = f"local:{secrets.token_hex(8)}"
    site = Uvicorn("app_example:app", "--workers", "2", environment=environment)
    try:
        statuses = [site.get("/", CHROME) for _ in range(30)]
    finally:
        site.close()
    assert statuses.count(200) == 10
    assert statuses.count(503) == 20


def test_several_processes_with_a_memory_store_are_told_once_what_that_does() -> None:
    site = Uvicorn("tests.server.real_site:app", "--workers", "3", environment={"TEST_STORE": "memory"})
    time.sleep(0.3)
    said = site.close()
    assert said.count("each counts for itself") == 1
    assert "store='local'" in said


def test_one_process_is_told_nothing() -> None:
    site = Uvicorn("tests.server.real_site:app", environment={"TEST_STORE": "memory"})
    assert "counts for itself" not in site.close()
    assert not processes.is_one_of_several()
