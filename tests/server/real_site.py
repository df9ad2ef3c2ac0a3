"""The site of `test_real_server.py`, run by uvicorn in processes of its own. /counts tells its store's counts."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from throttle import Delay, Limits, ThrottleMiddleware
from throttle.server.stores import Store
from throttle.server.stores.local import LocalStore
from throttle.server.stores.named import store_named

name = os.environ.get("TEST_STORE", "memory")
if lease := os.environ.get("TEST_LEASE"):
    store: Store = LocalStore(name.removeprefix("local:"), lease_seconds=float(lease))
else:
    store = store_named(name)


async def page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("page")


async def slow(request: Request) -> PlainTextResponse:
    await asyncio.sleep(60)
    return PlainTextResponse("slow")


waits = 0


async def until_hang_up(request: Request) -> PlainTextResponse:
    global waits
    waits += 1
    while (await request.receive())["type"] != "http.disconnect":
        pass
    waits -= 1
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
    return JSONResponse({"load": store.load, "sleeping": store.sleeping, "worker": os.getpid(), "waits": waits})


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
