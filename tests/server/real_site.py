"""The site of `test_real_server.py`, run by uvicorn in a process of its own. /counts tells its store's counts."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from throttle import Delay, Limits, ThrottleMiddleware
from throttle.server.stores.named import store_named

store = store_named(os.environ.get("TEST_STORE", "memory"))


async def page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("page")


async def slow(request: Request) -> PlainTextResponse:
    await asyncio.sleep(60)
    return PlainTextResponse("slow")


async def until_hang_up(request: Request) -> PlainTextResponse:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return PlainTextResponse("")


async def stream(request: Request) -> StreamingResponse:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0.01)

    media = "text/event-stream" if request.url.path == "/events" else "text/plain"
    return StreamingResponse(chunks(), media_type=media)


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(await request.body())


async def counts(request: Request) -> JSONResponse:
    return JSONResponse({"load": store.load, "sleeping": store.sleeping})


inner = Starlette(
    routes=[
        Route("/", page),
        Route("/slow", slow),
        Route("/wait", until_hang_up),
        Route("/stream", stream),
        Route("/events", stream),
        Route("/echo", echo, methods=["POST"]),
        Route("/counts", counts),
    ]
)
app: Any = ThrottleMiddleware(
    inner,
    store=store,
    exempt_paths=["/counts"],
    limits=Limits(
        load_max=int(os.environ.get("TEST_LOAD_MAX", "15")), defer_delay=Delay(0, 20), lone_crawler_seconds=None
    ),
)
