"""A site for tests: pages that answer at once, and pages that answer when they are told to."""

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests import virtual_clock
from throttle import ThrottleMiddleware


class Gate:
    """Pages below /slow wait here, so that a test says how many requests run."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.running = 0

    async def page(self, request: Request) -> Response:
        self.running += 1
        try:
            await self.opened.wait()
        finally:
            self.running -= 1
        return PlainTextResponse("slow")


async def page(request: Request) -> Response:
    return PlainTextResponse("page")


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


def site(gate: Gate | None = None, **settings: Any) -> ThrottleMiddleware:
    """The middleware around a small Starlette application, on the virtual clock."""
    routes: list[Any] = [Route("/echo", echo, methods=["POST"])]
    if gate is not None:
        routes.append(Route("/slow", gate.page))
    routes.append(Route("/{path:path}", page, methods=["GET", "HEAD", "POST", "OPTIONS"]))
    settings.setdefault("clock", virtual_clock.now)
    settings.setdefault("wall_clock", virtual_clock.now)
    settings.setdefault("random", lambda: 0.0)
    return ThrottleMiddleware(Starlette(routes=routes), **settings)
