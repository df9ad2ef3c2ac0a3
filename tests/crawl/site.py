"""A small web server on a loopback address for tests of crawls: pages are functions, and every request is logged."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Asked:
    method: str
    path: str
    host: str
    fields: dict[str, str]


Writer = asyncio.StreamWriter
Page = Callable[[Asked, Writer], Awaitable[None] | None]


def answer(status: int = 200, body: bytes = b"ok", kind: str = "text/plain", **fields: str) -> Page:
    """A page that always answers the same. `Retry_After="3"` is the field Retry-After."""
    lines = [f"HTTP/1.1 {status} Some Reason", f"Content-Length: {len(body)}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def write(asked: Asked, writer: Writer) -> None:
        writer.write(head if asked.method == "HEAD" else head + body)

    return write


def html(*hrefs: str) -> Page:
    return answer(body="".join(f"<a href='{href}'>.</a>" for href in hrefs).encode(), kind="text/html")


@dataclass
class Site:
    """`pages` by path, or by host and path; else `default`. `url("/x")`, and `url("/x", host=3)` on 127.0.0.3."""

    pages: dict[str, Page] = field(default_factory=lambda: {"/robots.txt": answer(404)})
    default: Page = field(default_factory=answer)
    port: int = 0
    log: list[Asked] = field(default_factory=list)
    on_request: Callable[[], None] = lambda: None
    tasks: set["asyncio.Task[None] | None"] = field(default_factory=set)

    def url(self, path: str = "/", host: int = 1) -> str:
        return f"http://127.0.0.{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        """What was asked for, robots.txt apart."""
        return [asked.path for asked in self.log if asked.path != "/robots.txt"]

    def counts(self) -> Counter[str]:
        return Counter(f"http://{asked.host}{asked.path}" for asked in self.log if asked.path != "/robots.txt")

    async def _serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.tasks.add(asyncio.current_task())
        with (
            contextlib.closing(writer),
            contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError),
        ):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request, *lines = head.split("\r\n")
                method, path, _ = request.split(" ")
                fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                asked = Asked(method, path, fields.get("host", ""), fields)
                self.log.append(asked)
                self.on_request()
                page = self.pages.get(asked.host + path) or self.pages.get(path) or self.default
                done = page(asked, writer)
                if done is not None:
                    await done
                await writer.drain()
                if writer.is_closing():
                    return


@asynccontextmanager
async def serving(site: Site | None = None) -> AsyncIterator[Site]:
    """On all of 127.0.0.0/8, at a free port."""
    site = site or Site()
    server = await asyncio.start_server(site._serve, "0.0.0.0", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in site.tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in site.tasks if task is not None))
        await asyncio.sleep(0)  # transports close in the loop's next turn
