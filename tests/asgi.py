"""A caller for tests: sends one request to an ASGI application and keeps what it answers."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36"
)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
FEED_READER = "Feedbin feed-id:1 - 3 subscribers"


class Answer:
    """One request's answer, whole or so far."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    @property
    def status(self) -> int | None:
        for message in self.messages:
            if message["type"].endswith("http.response.start"):
                return int(message["status"])
        return None

    @property
    def fields(self) -> dict[str, str]:
        for message in self.messages:
            if message["type"].endswith("http.response.start"):
                return {name.decode(): value.decode() for name, value in message["headers"]}
        return {}

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.messages if m["type"].endswith("http.response.body"))

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def retry_after(self) -> int:
        return int(self.fields["retry-after"])


def http_scope(
    path: str = "/",
    *,
    agent: str | bytes | None = CHROME,
    client: str | None = "192.0.2.1",
    method: str = "GET",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    **more: Any,
) -> dict[str, Any]:
    raw = [(b"host", b"library.example")]
    if agent is not None:
        raw.append((b"user-agent", agent if isinstance(agent, bytes) else agent.encode("latin-1")))
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    raw += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": b"",
        "root_path": "",
        "headers": raw,
        "client": None if client is None else (client, 50_000),
        "server": ("library.example", 80),
        "extensions": {},
        **more,
    }


class Request:
    """A request under way: `hang_up` at will, then await `finished`."""

    def __init__(self, app: Any, scope: Mapping[str, Any], body: Iterable[bytes] = (b"",)) -> None:
        self.answer = Answer()
        self.hung_up = asyncio.Event()
        chunks = list(body)
        self._incoming: list[dict[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": place < len(chunks) - 1}
            for place, chunk in enumerate(chunks)
        ]
        self.task = asyncio.ensure_future(app(dict(scope), self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._incoming:
            return self._incoming.pop(0)
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.answer.messages.append(message)

    def hang_up(self) -> None:
        self.hung_up.set()

    async def finished(self) -> Answer:
        await self.task
        return self.answer


async def ask(app: Callable[..., Any], path: str = "/", *, body: Iterable[bytes] = (b"",), **scope: Any) -> Answer:
    """The whole answer to one request."""
    return await Request(app, http_scope(path, **scope), body).finished()
