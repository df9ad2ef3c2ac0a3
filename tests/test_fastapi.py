"""The FastAPI dependency for one route, and the refusals in the OpenAPI document."""

import asyncio
from typing import Any

import pytest
from fastapi import Depends, FastAPI

from tests import virtual_clock
from tests.asgi import CHROME, ask
from tests.virtual_clock import run
from throttle import ThrottleMiddleware
from throttle.fastapi import route_limit, throttle_responses


def api(**settings: Any) -> FastAPI:
    app = FastAPI(responses=throttle_responses(503, 429))

    @app.get("/export", dependencies=[Depends(route_limit(hits=2, seconds=60))])
    async def export() -> str:
        return "done"

    @app.get("/import/{name}", dependencies=[Depends(route_limit(hits=2, seconds=60))])
    async def bring(name: str) -> str:
        return "done"

    app.add_middleware(ThrottleMiddleware, clock=virtual_clock.now, **settings)
    return app


def test_a_route_serves_each_caller_so_many_times_and_other_routes_count_apart() -> None:
    async def story() -> None:
        app = api()
        assert [(await ask(app, "/export")).status for _ in range(3)] == [200, 200, 503]
        assert (await ask(app, "/export", agent=CHROME + " other")).status == 200
        assert [(await ask(app, f"/import/{n}")).status for n in range(3)] == [200, 200, 503]
        refused = await ask(app, "/export")
        assert refused.retry_after == 60
        await asyncio.sleep(60)
        assert (await ask(app, "/export")).status == 200

    run(story())


def test_a_dry_run_and_an_exempt_caller_are_left_alone_and_the_status_is_settable() -> None:
    async def story() -> None:
        dry = api(enforce=False)
        assert [(await ask(dry, "/export")).status for _ in range(4)] == [200] * 4
        exempt = api(exempt_callers=["192.0.2.1"])
        assert [(await ask(exempt, "/export")).status for _ in range(4)] == [200] * 4
        strict = api(status={"route_limit": 429})
        assert [(await ask(strict, "/export")).status for _ in range(3)] == [200, 200, 429]

    run(story())


def test_the_load_is_counted_once() -> None:
    async def story() -> None:
        app = api()
        await ask(app, "/export")
        throttle: Any = app.middleware_stack
        while not isinstance(throttle, ThrottleMiddleware):
            throttle = throttle.app
        assert throttle.store.load == 0

    run(story())


def test_the_openapi_document_tells_of_refusals() -> None:
    responses = api().openapi()["paths"]["/export"]["get"]["responses"]
    assert "Retry-After" in responses["503"]["headers"]
    assert "application/problem+json" in responses["429"]["content"]


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(ValueError, match="stack_hits=0"):
        route_limit(hits=0, seconds=1)

    async def story() -> None:
        app = FastAPI()
        app.get("/", dependencies=[Depends(route_limit(hits=1, seconds=1))])(lambda: "x")
        with pytest.raises(RuntimeError, match="mount ThrottleMiddleware"):
            await ask(app)

    run(story())
