"""A site in a process of its own, which ends with the one that started it, however that ends.

The two halves share a pipe each way. The child writes «ready PORT» when it serves, and then four times a second what
runs and sleeps in it, so that nothing of this is to be had over the network. Its standard input ends when the parent
lets go of it, or is killed. `python -m throttle.cli.demo_site` is the child.
"""

import argparse
import asyncio
import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from throttle.cli import CommandError
from throttle.load.places import Links, SiteMap
from throttle.load.report import Counts
from throttle.load.wire import LOOPBACK

if TYPE_CHECKING:
    from throttle import ThrottleMiddleware

DATA = "APP_EXAMPLE_DATA"
PAPERS = "app_example:app"
PAPERS_MAP: SiteMap = {
    "pages": (
        "/",
        Links("/sitemap.xml"),
        *(f"/search?q={words}" for words in ("open+access", "citation+analysis", "peer+review", "metadata")),
    ),
    "feeds": ("/feed.atom", "/tag/bibliometrics/feed.atom", "/tag/metadata/feed.atom"),
    "api": ("/api/papers", "/api/tags", Links("/sitemap.xml", "/api/*")),
    "dear": (Links("/users", "/user/*/related"),),
}
TELL_EVERY_SECONDS = 0.25
STOP_SECONDS = 10.0
GRACEFUL_SECONDS = 1


class DemoSite:
    """A running site: where it is, whether it still runs, and what it tells of itself."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, errors: IO[bytes]) -> None:
        self.process = process
        self.port = port
        self.counts: list[Counts] = []
        """with the instants of `time.monotonic`"""
        self._errors = errors
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError):  # the pipe is closed
            for line in self.process.stdout:
                word, *numbers = line.split()
                if word == b"counts":
                    load, load_max, sleeping, sleeping_max = map(int, numbers)
                    told = Counts(time.monotonic(), load, load_max or None, sleeping, sleeping_max or None)
                    self.counts.append(told)

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
def running_site(
    *,
    port: int = 0,
    data: Path | None = None,
    trusts_forwarding: bool = False,
    app: str = PAPERS,
    environment: Mapping[str, str] | None = None,
) -> Iterator[DemoSite]:
    """A site on 127.0.0.1 while the block lasts; port 0 takes a free one. Raises CommandError if it cannot start.

    `data` None: a temporary directory, gone when the site has ended. `app`: MODULE:NAME of an ASGI application.
    """
    environment = {**os.environ, **(environment or {})}
    if data is not None:
        environment[DATA] = str(data)
    if trusts_forwarding:
        environment["APP_EXAMPLE_TRUSTED_PROXIES"] = LOOPBACK
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                __spec__.name,
                f"--port={port}",
                f"--app={app}",
                *(["--temporary"] if data is None else []),
            ],
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
    parser.add_argument("--app", default=PAPERS)
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
        _serve(_bound(arguments.port), arguments.app)


def _serve(bound: socket.socket, named: str) -> None:
    import uvicorn

    module, _, name = named.partition(":")
    counted = Counted(getattr(importlib.import_module(module), name))

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"ready {bound.getsockname()[1]}", flush=True)
            self.telling = asyncio.create_task(counted.tell())

    Server(
        uvicorn.Config(
            counted,
            lifespan="on",
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # the throttle itself decides whose forwarding headers count
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
        )
    ).run(sockets=[bound])


class Counted:
    """Counts what runs in a site, and tells it; what its throttle counts, where it has one."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.running = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.running += scope["type"] == "http"
        try:
            await self.app(scope, receive, send)
        finally:
            self.running -= scope["type"] == "http"

    async def tell(self) -> None:
        while True:
            throttle = self._throttle()
            if throttle is None:
                print(f"counts {self.running} 0 0 0", flush=True)
            else:
                beds = throttle.limits.sleeping_max
                print(f"counts {throttle.load} {throttle.load_max} {throttle.sleeping} {beds}", flush=True)
            await asyncio.sleep(TELL_EVERY_SECONDS)

    def _throttle(self) -> "ThrottleMiddleware | None":
        from throttle import ThrottleMiddleware

        layer = getattr(self.app, "middleware_stack", None) or self.app
        while layer is not None and not isinstance(layer, ThrottleMiddleware):
            layer = getattr(layer, "app", None)
        return layer


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
