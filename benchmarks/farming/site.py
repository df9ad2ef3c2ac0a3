"""One host of the farm: the simulation's own limits and latencies, on the event loop's clock; it keeps the truth."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from benchmarks.farming.plan import AWAY, BLOCKED, FAILING, FINE, MISSING, MOVED, HostPlan
from benchmarks.farming.situation import site_of
from benchmarks.simulator.hosts import BucketHost, Reply, SimulatedHost, Steps, WindowHost, WorkerHost

BODY = b"<!doctype html><title>A page</title><p>" + b"x" * 961


class LoopClockwork:
    """As the simulation's `Clockwork`, in real time; it begins with the host's first request."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None

    @property
    def now(self) -> float:
        time = self._loop.time()
        if self._began is None:
            self._began = time
        return time - self._began

    def after(self, seconds: float, action: Callable[..., None], *arguments: object) -> None:
        self._loop.call_later(seconds, action, *arguments)

    def at(self, time: float, action: Callable[..., None], *arguments: object) -> None:
        self.after(max(0.0, time - self.now), action, *arguments)


def limited(limit: dict[str, Any], random: Random) -> SimulatedHost:
    """The simulated host that `limit` describes: `kind`, then the arguments of its class by name."""
    arguments = dict(limit)
    kind = arguments.pop("kind")
    clockwork: Any = LoopClockwork()
    if kind == "situation":
        return site_of(clockwork, random, **arguments)
    if kind == "bucket":
        return BucketHost(clockwork, random, Steps(arguments.pop("rate")), arguments.pop("burst"), **arguments)
    if kind == "window":
        return WindowHost(clockwork, random, **arguments)
    if kind == "workers":
        return WorkerHost(clockwork, random, **arguments)
    raise ValueError(f"a host's limit is bucket, window, workers or situation, not {kind}")


class Site:
    """`answer(method, path, send)` calls `send` with the bytes, at once or when it is time."""

    def __init__(self, plan: HostPlan, next_address: str, port: int) -> None:
        self.plan = plan
        self._away = f"http://{next_address}:{port}/moved"
        self._limit = limited(dict(plan.limit), Random(plan.address)) if plan.limit is not None else None
        self._now = asyncio.get_running_loop().time
        self._last_second: deque[float] = deque()
        self._pages: Counter[str] = Counter()
        self._refused = self._robots = self._blocked = self._worst = 0
        self._first = self._last = 0.0

    def answer(self, method: bytes, path: str, send: Callable[[bytes], None]) -> None:
        self._count_second()
        if self._limit is None:
            send(self._page(method, path))
        else:
            self._limit.send(0, lambda reply: send(self._reply(method, path, reply)))

    def _count_second(self) -> None:
        now = self._last = self._now()
        self._first = self._first or now
        last = self._last_second
        last.append(now)
        while last[0] <= now - 1:
            last.popleft()
        self._worst = max(self._worst, len(last))

    def _reply(self, method: bytes, path: str, reply: Reply) -> bytes:
        fields = b""
        if reply.quota is not None:
            quota = reply.quota
            fields += b'RateLimit: "farm";r=%d;t=%d\r\n' % (quota.remaining, quota.seconds)
            fields += b'RateLimit-Policy: "farm";q=%d;w=%d\r\n' % (quota.limit or 0, quota.window_seconds or 0)
        if reply.status == 200:
            return self._page(method, path, fields)
        self._refused += 1
        if reply.retry_after is not None:
            fields += b"Retry-After: %d\r\n" % reply.retry_after
        return response(method, reply.status, fields, b"not now\n")

    def _page(self, method: bytes, path: str, fields: bytes = b"") -> bytes:
        plan = self.plan
        if path == "/robots.txt":
            self._robots += 1
            body = (plan.robots or "").encode()
            return response(method, 404 if plan.robots is None else 200, fields, body, b"text/plain")
        served = sum(self._pages.values()) if plan.blocks_after is not None else 0
        if plan.blocks_after is not None and served >= plan.blocks_after:
            self._blocked += 1
            return response(method, 403, fields + b"cf-mitigated: challenge\r\n", b"are you human?\n")
        self._pages[path] += 1
        kind = FINE if path.startswith("/moved") else plan.page(path)
        if kind == FAILING:
            return response(method, 500, fields, b"it failed\n")
        if kind == MISSING:
            return response(method, 404, fields, b"not here\n")
        if kind in (MOVED, AWAY):
            target = f"/moved{path}" if kind == MOVED else self._away + path
            return response(method, 302, fields + b"Location: %b\r\n" % target.encode(), b"")
        return FINE_PAGE if method == b"GET" and not fields else response(method, 200, fields, BODY)

    def truth(self) -> dict[str, Any]:
        """`admitted` requests, robots.txt apart; `pages` different ones; the `worst_second` of all that came."""
        return {
            "address": self.plan.address,
            "admitted": self._pages.total(),
            "pages": len(self._pages),
            "refused": self._refused,
            "robots": self._robots,
            BLOCKED: self._blocked,
            "worst_second": self._worst,
            "seconds": self._last - self._first,
        }


_PHRASES = {200: b"OK", 302: b"Found", 403: b"Forbidden", 404: b"Not Found", 429: b"Too Many Requests"}


def response(
    method: bytes, status: int, fields: bytes, body: bytes, kind: bytes = b"text/html; charset=utf-8"
) -> bytes:
    head = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n" % (
        status,
        _PHRASES.get(status, b"Server Error"),
        kind,
        len(body),
        fields,
    )
    return head if method == b"HEAD" else head + body


FINE_PAGE = response(b"GET", 200, b"", BODY)
