"""The FastAPI dependency for one route, and the refusals in the OpenAPI document."""

import asyncio
from typing import Any

import pytest
from fastapi import APIRouter, Depends, FastAPI

from tests import virtual_clock
from tests.asgi import CHROME, ask
from tests.virtual_clock import run
from throttle import Limits, MemoryStore, ThrottleMiddleware
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


def test_routes_of_two_routers_count_apart_though_their_paths_differ_in_the_prefix_only() -> None:
    async def story() -> None:
        app = FastAPI()

        async def order(name: str) -> str:
            return name

        async def user(name: str) -> str:
            return name

        for prefix, endpoint in (("/orders", order), ("/users", user)):
            router = APIRouter()
            router.get("/{name}", dependencies=[Depends(route_limit(hits=1, seconds=60))])(endpoint)
            app.include_router(router, prefix=prefix)
        app.add_middleware(ThrottleMiddleware, clock=virtual_clock.now)
        assert [(await ask(app, path)).status for path in ("/orders/1", "/users/1", "/orders/2")] == [200, 200, 503]

    run(story())


def test_two_methods_of_one_path_are_two_routes_and_a_name_makes_them_share() -> None:
    async def story() -> None:
        app = FastAPI()

        async def page() -> str:
            return "x"

        for method in (app.get, app.post):
            method("/apart", dependencies=[Depends(route_limit(hits=1, seconds=60))])(page)
            method("/shared", dependencies=[Depends(route_limit(hits=1, seconds=60, name="both"))])(page)
        app.add_middleware(ThrottleMiddleware, clock=virtual_clock.now)
        both = ("GET", "POST")
        assert [(await ask(app, "/apart", method=method)).status for method in both] == [200, 200]
        assert [(await ask(app, "/shared", method=method)).status for method in both] == [200, 503]

    run(story())


def test_who_is_refused_by_a_route_is_counted_as_refused_and_not_as_served_too() -> None:
    async def story() -> None:
        app = api()
        for _ in range(3):
            await ask(app, "/export")
        counted = throttle_of(app).counts()["browser"]
        assert (counted["served"], counted["refused"]) == (
            2,
            {"route_limit:GET /export tests.test_fastapi.api.<locals>.export": 1},
        )

    run(story())


def test_a_routes_rule_is_prepared_once() -> None:
    async def story() -> None:
        store = MemoryStore()
        app = api(store=store)
        await ask(app, "/export")
        prepared: list[Any] = []
        prepare = store.prepare
        store.prepare = lambda *rules, **how: prepared.append(rules) or prepare(*rules, **how)  # type: ignore
        await ask(app, "/export")
        assert prepared == []

    run(story())


def throttle_of(app: FastAPI) -> ThrottleMiddleware:
    throttle: Any = app.middleware_stack
    while not isinstance(throttle, ThrottleMiddleware):
        throttle = throttle.app
    return throttle


def test_the_load_is_counted_once() -> None:
    async def story() -> None:
        app = api()
        await ask(app, "/export")
        assert throttle_of(app).store.load == 0

    run(story())


def test_the_openapi_document_tells_of_refusals() -> None:
    responses = api().openapi()["paths"]["/export"]["get"]["responses"]
    assert "Retry-After" in responses["503"]["headers"]
    assert "application/problem+json" in responses["429"]["content"]


def test_a_routes_refusal_and_the_middlewares_are_as_the_openapi_document_says() -> None:
    async def story() -> None:
        app = api(limits=Limits(stack_hits=4))
        answers = [await ask(app, "/export", headers={"Accept": "application/json"}) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 503, 503, 503]
        documented = app.openapi()["paths"]["/export"]["get"]["responses"]["503"]
        for answer in (answers[2], answers[4]):  # the route's, and the hit stack's
            (content_type, document) = next(iter(documented["content"].items()))
            assert answer.fields["content-type"] == content_type == "application/problem+json"
            assert set(document["schema"]["required"]) <= set(answer.json) <= set(document["schema"]["properties"])
            assert "Please come back in" in answer.json["detail"]
            assert answer.retry_after >= 1
        assert answers[2].json == {"detail": "A limit of this site was reached. Please come back in 60 seconds."}

    run(story())


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(ValueError, match="stack_hits=0"):
        route_limit(hits=0, seconds=1)

    async def story() -> None:
        app = FastAPI()
        app.get("/", dependencies=[Depends(route_limit(hits=1, seconds=1))])(lambda: "x")
        with pytest.raises(RuntimeError, match="mount ThrottleMiddleware"):
            await ask(app)

    run(story())
