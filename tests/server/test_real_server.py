"""The middleware under uvicorn, over real sockets: callers that hang up, streams, shutdown."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.asgi import CHROME, FEED_READER

ROOT = Path(__file__).parents[2]


class Server:
    """uvicorn with `real_site.py` on a port of its own."""

    def __init__(self, load_max: int) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        command = [sys.executable, "-m", "uvicorn", "tests.server.real_site:app", "--log-level", "warning"]
        self.process = subprocess.Popen(
            [*command, "--fd", str(self.socket.fileno())],
            cwd=ROOT,
            env={**os.environ, "TEST_LOAD_MAX": str(load_max)},
            pass_fds=[self.socket.fileno()],
            stderr=subprocess.PIPE,
        )
        until(lambda: self.counts() == (0, 0), "the server answers")

    def open(self, path: str, agent: str = CHROME, method: str = "GET", body: bytes = b"") -> socket.socket:
        """A connection on which a request was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        length = f"content-length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nuser-agent: {agent}\r\n{length}\r\n"
        connection.sendall(head.encode() + body)
        return connection

    def counts(self) -> tuple[int, int]:
        """Requests that run, and that sleep."""
        body = json.loads(read(self.open("/counts")).partition(b"\r\n\r\n")[2])
        return body["load"], body["sleeping"]

    def close(self) -> None:
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def server(load_max: int = 15) -> Iterator[Server]:
    running = Server(load_max)
    try:
        yield running
    finally:
        running.close()


def read(connection: socket.socket) -> bytes:
    parts = []
    with connection:
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition, at most ten seconds."""
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up, f"waited in vain: {what}"
        time.sleep(0.01)


def test_the_count_is_right_again_after_callers_hung_up_in_every_phase() -> None:
    with server() as site:
        waiting = [site.open("/wait") for _ in range(5)]
        streaming = [site.open("/stream") for _ in range(4)]
        until(lambda: site.counts() == (9, 0), "nine run")
        for connection in streaming:
            connection.recv(1)
        for connection in waiting + streaming:
            connection.close()
        until(lambda: site.counts() == (0, 0), "nobody runs")


def test_an_event_stream_leaves_the_count_when_it_starts() -> None:
    with server() as site:
        events, download = site.open("/events"), site.open("/stream")
        assert events.recv(1)
        assert download.recv(1)
        until(lambda: site.counts() == (1, 0), "the download alone counts")
        events.close()
        download.close()
        until(lambda: site.counts() == (0, 0), "nobody runs")


def test_a_sleeper_leaves_when_its_caller_hangs_up_and_another_is_served_when_there_is_room() -> None:
    with server(load_max=1) as site:
        person = site.open("/wait")
        until(lambda: site.counts() == (1, 0), "the person runs")
        leaving = site.open("/", FEED_READER)
        staying = site.open("/echo", FEED_READER, "POST", b"y" * 300_000)
        until(lambda: site.counts() == (1, 2), "two sleep")
        leaving.close()
        until(lambda: site.counts() == (1, 1), "one sleeps")
        person.close()
        answer = read(staying)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"y" * 300_000)
        until(lambda: site.counts() == (0, 0), "nobody runs")


def test_a_server_that_is_told_to_stop_wakes_its_sleepers_at_once_and_refuses_them() -> None:
    with server(load_max=1) as site:
        person = site.open("/wait")
        until(lambda: site.counts() == (1, 0), "the person runs")
        sleeper = site.open("/", FEED_READER)
        until(lambda: site.counts() == (1, 1), "one sleeps")
        began = time.monotonic()
        site.process.send_signal(signal.SIGTERM)
        assert read(sleeper).startswith(b"HTTP/1.1 503")
        person.close()
        site.process.wait(timeout=10)
        assert time.monotonic() - began < 5  # its sleep would have lasted 20 s
        assert site.process.stderr is not None
        assert b"Traceback" not in site.process.stderr.read()


def test_people_are_served_while_ten_bots_sleep_and_the_rest_are_refused() -> None:
    with server(load_max=2) as site:
        holding = [site.open("/wait") for _ in range(2)]
        until(lambda: site.counts() == (2, 0), "two run")
        bots = [site.open("/", f"{FEED_READER} {n}") for n in range(10)]
        until(lambda: site.counts() == (2, 10), "ten sleep")
        refused = read(site.open("/", "another reader/1.0"))
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after:" in refused
        assert read(site.open("/")).startswith(b"HTTP/1.1 200")
        for connection in holding:
            connection.close()
        assert all(read(connection).startswith(b"HTTP/1.1 200") for connection in bots)


def test_with_lifespan_on_a_wrong_setting_ends_the_server_and_is_said(tmp_path: Path) -> None:
    site = "from starlette.applications import Starlette\nfrom throttle import ThrottleMiddleware\n"
    site += "app = Starlette()\napp.add_middleware(ThrottleMiddleware, config='throttle.toml')\n"
    (tmp_path / "wrong_site.py").write_text(site)
    (tmp_path / "throttle.toml").write_text("load_max = 3")
    command = [sys.executable, "-m", "uvicorn", "wrong_site:app", "--lifespan", "on", "--port", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "throttle.toml: unknown key 'load_max'" in done.stderr
