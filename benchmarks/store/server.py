"""A private server for one benchmark: on a free port of loopback, nothing on disk, gone at the end."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

import redis

from throttle.server.stores.local import server_binary


class Server:
    """A running server, and what it counted."""

    def __init__(self, port: int, client: redis.Redis) -> None:
        self.url = f"redis://127.0.0.1:{port}"
        self.client = client
        about = client.info("server")
        self.name = (
            f"Valkey {about['valkey_version']}" if "valkey_version" in about else f"Redis {about['redis_version']}"
        )

    def calls(self) -> dict[str, int]:
        """How often each command was called, those inside scripts included."""
        stats = self.client.info("commandstats")
        return {name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()}

    def seconds_of_cpu(self) -> float:
        used = self.client.info("cpu")
        return float(used["used_cpu_user"] + used["used_cpu_sys"])


@contextlib.contextmanager
def running(*options: str) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="throttle-benchmark-")
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, *options]
    process = subprocess.Popen([server_binary(), *words], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield Server(port, client)
    finally:
        client.close()
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
