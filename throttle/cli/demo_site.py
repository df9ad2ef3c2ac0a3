"""The demo's site in a process of its own, which ends with the one that started it, however that ends.

The two halves share a pipe each way: the child writes one line, «ready PORT», when it serves; its standard input ends
when the parent lets go of it, or is killed. `python -m throttle.cli.demo_site` is the child.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from throttle.cli import CommandError
from throttle.load.wire import LOOPBACK

DATA = "APP_EXAMPLE_DATA"
STOP_SECONDS = 10.0
GRACEFUL_SECONDS = 1


class DemoSite:
    """A running site: where it is, and whether it still runs."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, errors: IO[bytes]) -> None:
        self.process = process
        self.port = port
        self._errors = errors

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self) -> str:
        """The last line that the site wrote to its standard error."""
        return _last_line(self._errors)


@contextmanager
def running_site(*, port: int, data: Path | None, trusts_forwarding: bool) -> Iterator[DemoSite]:
    """A site on 127.0.0.1 while the block lasts; port 0 takes a free one. Raises CommandError if it cannot start.

    `data` None: a temporary directory, gone when the site has ended.
    """
    environment = dict(os.environ)
    if data is not None:
        environment[DATA] = str(data)
    if trusts_forwarding:
        environment["APP_EXAMPLE_TRUSTED_PROXIES"] = LOOPBACK
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name, f"--port={port}", *(["--temporary"] if data is None else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which then ends the site in order
        ) as process,
    ):
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if words[:1] != [b"ready"]:
                process.wait(STOP_SECONDS)
                raise CommandError(_last_line(errors) or "the site did not start, and did not say why")
            yield DemoSite(process, int(words[1]), errors)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
    except KeyboardInterrupt:  # once more
        process.kill()
        raise


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read()[-10_000:].decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


# The child


def serve() -> None:
    """Serve the site until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--temporary", action="store_true")
    arguments = parser.parse_args()
    # The server hears this signal, stops, and raises it again for whoever was asked before: nobody.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with contextlib.ExitStack() as until_the_end:
        # From here on: the parent may go while the database is being made.
        threading.Thread(target=_end_with_the_parent, args=[until_the_end], daemon=True).start()
        if arguments.temporary:
            made = tempfile.TemporaryDirectory(prefix="throttle-demo-", ignore_cleanup_errors=True)
            os.environ[DATA] = until_the_end.enter_context(made)
        _serve(_bound(arguments.port))


def _serve(bound: socket.socket) -> None:
    import uvicorn

    from app_example import app

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"ready {bound.getsockname()[1]}", flush=True)

    Server(
        uvicorn.Config(
            app,
            lifespan="on",
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # the throttle itself decides whose forwarding headers count
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
        )
    ).run(sockets=[bound])


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    if os.name == "posix":
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
    except OSError as error:
        raise SystemExit(
            f"cannot serve on {LOOPBACK}:{port}: {error.strerror}. Name another --port, or none to take a free one."
        ) from None
    return bound


def _end_with_the_parent(until_the_end: contextlib.ExitStack) -> None:
    while os.read(0, 1024):
        pass
    signal.raise_signal(signal.SIGTERM)
    time.sleep(GRACEFUL_SECONDS + 0.5)
    # Queries that run in threads would hold the process until they are done. They only read.
    until_the_end.close()
    os._exit(0)


if __name__ == "__main__":
    serve()
