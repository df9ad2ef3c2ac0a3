"""A site under a real uvicorn in processes of its own, for tests, and callers that speak to it over sockets."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests import servers
from tests.asgi import CHROME

ROOT = Path(__file__).parents[1]


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


def body_of(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts).partition(b"\r\n\r\n")[2]
