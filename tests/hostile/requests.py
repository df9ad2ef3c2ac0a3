"""Requests with hostile headers, and what must hold of the answer to each: for Hypothesis and for atheris alike."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.asgi import CHROME as CHROME
from tests.asgi import GOOGLEBOT as GOOGLEBOT
from tests.asgi import Request, http_scope
from throttle import Limits, MemoryStore, ThrottleMiddleware
from throttle.server.refusal import REASONS, Refusal, messages

READ = (
    b"user-agent",
    b"x-forwarded-for",
    b"forwarded",
    b"x-real-ip",
    b"x-forwarded-proto",
    b"cookie",
    b"sec-fetch-dest",
    b"sec-fetch-mode",
    b"accept-language",
    b"accept",
    b"origin",
    b"access-control-request-method",
)
"""Every header of a request that the middleware looks at. (Authorization and Host are none of them.)"""

LARGEST = 65_536
"""bytes that servers let through in all of a request's headers"""
SLOW = 0.001
"""seconds of CPU above what the same request takes without headers"""

Headers = Sequence[tuple[bytes, bytes]]


class Clock:
    """Seconds that pass when told; two requests of one caller are then a burst, or not."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def page(request: Asked) -> Response:
    return PlainTextResponse("page")


class Site:
    """A site on which a caller is refused at its second request at the latest, in one of the ways there are."""

    def __init__(self, *, runs: int = 0, client: str = "192.0.2.1", scheme: str = "https", **settings: Any) -> None:
        self.clock = Clock()
        self.client, self.scheme = client, scheme
        self.store = MemoryStore(max_callers=3 * 64, clock=self.clock)
        self.throttle = ThrottleMiddleware(
            Starlette(routes=[Route("/", page)]),
            store=self.store,
            clock=self.clock,
            wall_clock=self.clock,
            random=lambda: 0.0,
            reverse_dns=False,
            **settings,
        )
        for _ in range(runs):
            self.store.admit(self.store.prepare([]), (0,), 0, 0)

    def scope(self, headers: Headers, client: str | None = None) -> dict[str, Any]:
        asked = http_scope(client=self.client if client is None else client, scheme=self.scheme)
        return {**asked, "headers": list(headers)}

    async def ask(self, scope: dict[str, Any]) -> Request:
        request = Request(self.throttle, scope)
        await request.finished()
        return request


PICKY = Limits(stack_hits=1)
MODERN = Limits.modern(stack_hits=1, parts_hits=1)
BUSY = Limits.modern(load_max=1, sleeping_max=0, stack_hits=1, parts_hits=1)
PROXY = "10.0.0.1"
BEHIND: dict[str, Any] = {"client": PROXY, "trusted_proxies": ["10.0.0.0/8"], "limits": MODERN}

SITES: dict[str, Callable[[], Site]] = {
    "the page's rules": lambda: Site(limits=PICKY),
    "modern": lambda: Site(limits=MODERN),
    "modern, over http": lambda: Site(limits=MODERN, scheme="http"),
    "modern, no room for bots": lambda: Site(limits=BUSY, runs=1),
    "behind a proxy": lambda: Site(**BEHIND),
    "behind a proxy, X-Forwarded-For": lambda: Site(**BEHIND, forwarded_header="X-Forwarded-For"),
    "behind a proxy, Forwarded": lambda: Site(**BEHIND, forwarded_header="Forwarded"),
    "behind a proxy, X-Real-IP": lambda: Site(**BEHIND, forwarded_header="X-Real-IP"),
    "own lists": lambda: Site(limits=MODERN, crawlers=["crawl"], bots=["bot"], browsers=["Mozilla"]),
    "everybody banned": lambda: Site(limits=MODERN, banned_callers=["*"]),
    "paused": lambda: Site(limits=Limits(paused=True)),
    "dry run": lambda: Site(limits=MODERN, enforce=False),
}


# What may stand in an answer

_COUNTED = re.compile(rb"\d+ (?:second|minute|hour)s?|\"retry-after\": \d+")
_NAMES = frozenset(
    b"cache-control content-length content-type ratelimit ratelimit-policy refresh retry-after set-cookie".split()
)
_VALUE = re.compile(rb"[ -~]+")
_LINE = re.compile(r"[\w .,:;()+\-/%]+")


def _without_numbers(body: bytes) -> bytes:
    return _COUNTED.sub(b"N", body)


def _texts() -> Iterable[bytes]:
    """Every prepared text, in each form."""
    for reason in REASONS:
        for status in (403, 503):
            for is_person in (True, False):
                for accept in (b"*/*", b"application/json"):
                    for method in ("GET", "POST"):
                        refusal = Refusal(status, 7, reason, is_person)
                        yield messages(refusal, method, [(b"accept", accept)])[1]["body"]


_OURS = frozenset(map(_without_numbers, (*_texts(), b"page")))


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Listening:
    """Hears the throttle's loggers while it is entered, at the level of refusals."""

    def __enter__(self) -> list[str]:
        self._logger = logging.getLogger("throttle")
        self._handler, self._level = Heard(), self._logger.level
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)
        return self._handler.lines

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)


class Verdicts(NamedTuple):
    """The statuses of both requests."""

    first: int
    second: int


async def held_to_all(site: Site, headers: Headers, client: str | None = None) -> Verdicts:
    """Asks twice with these headers; AssertionError where an answer or a line of the log has what it should not."""
    site.clock.now += 60
    statuses = []
    with Listening() as lines:
        for _ in range(2):
            answer = (await site.ask(site.scope(headers, client))).answer
            assert answer.status in (200, 403, 503), answer.status
            _hold_answer(answer.messages)
            statuses.append(answer.status)
        site.throttle._refusals.close()
    for line in lines:
        assert _LINE.fullmatch(line), line
        assert len(line) < 1000
    return Verdicts(*statuses)


def _hold_answer(sent: list[dict[str, Any]]) -> None:
    """Nothing of what the caller sent stands in it."""
    start, *rest = sent
    for name, value in start["headers"]:
        assert name in _NAMES, name
        assert _VALUE.fullmatch(value), value
    body = b"".join(message.get("body", b"") for message in rest)
    assert _without_numbers(body) in _OURS, body


def seconds_of_cpu(site: Site, headers: Headers, client: str | None = None) -> float:
    """What one request takes, the least of several, since the machine may be busy. Runs a loop of its own."""

    async def timed() -> float:
        took = []
        for _ in range(5):
            request = site.scope(headers, client)
            began = time.thread_time()
            await site.ask(request)
            took.append(time.thread_time() - began)
            if took[-1] < SLOW / 2:
                break
        return min(took)

    return asyncio.run(timed())
