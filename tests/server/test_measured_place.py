"""Which requests tell how much a site can run, and what the middleware shows of it."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from tests import virtual_clock
from tests.asgi import CHROME, FEED_READER, Request, http_scope
from tests.virtual_clock import in_virtual_time
from throttle import Limits, ThrottleMiddleware
from throttle.server.measured_place import kind_of
from throttle.server.settings import PathLimits

AUTO = Limits(load_max="auto", stack_hits=None)


async def page(request: StarletteRequest) -> Response:
    await asyncio.sleep(0.05)
    return PlainTextResponse("page", status_code=int(request.query_params.get("status", 200)))


async def failing(request: StarletteRequest) -> Response:
    await asyncio.sleep(0.05)
    raise RuntimeError("broken")


async def events(request: StarletteRequest) -> Response:
    async def lines() -> Any:
        for _ in range(3):
            await asyncio.sleep(1)
            yield "data: x\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def slowly_read(request: StarletteRequest) -> Response:
    async def parts() -> Any:
        yield "begun"
        await asyncio.sleep(10)
        yield "ended"

    return StreamingResponse(parts(), media_type="text/plain")


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await asyncio.sleep(1)
    await socket.close()


def site(**settings: Any) -> ThrottleMiddleware:
    routes = [
        Route("/page", page),
        Route("/failing", failing),
        Route("/events", events),
        Route("/read", slowly_read),
        Route("/items/{name}", page),
        Mount("/old", routes=[Route("/{path:path}", page)]),
        WebSocketRoute("/talk", talk),
    ]
    settings.setdefault("limits", AUTO)
    settings.setdefault("clock", virtual_clock.now)
    settings.setdefault("random", lambda: 0.5)
    return ThrottleMiddleware(Starlette(routes=routes), **settings)


def request(app: Any, path: str = "/page", agent: str = CHROME, query: bytes = b"") -> Request:
    return Request(app, http_scope(path, agent=agent, query_string=query))


@in_virtual_time
async def test_a_page_that_was_served_is_a_measure() -> None:
    app = site()
    assert (await request(app).finished()).status == 200
    assert app.load_limit is not None
    assert (app.load_limit.finished_in_all, app.load_limit.running) == (1, 0)


@pytest.mark.parametrize("path", ["/failing", "/events", "/nowhere", "/page?status=500"])
@in_virtual_time
async def test_failures_streams_and_what_is_not_there_are_none(path: str) -> None:
    app = site()
    path, _, query = path.partition("?")
    try:
        await request(app, path, query=query.encode()).finished()
    except RuntimeError:
        assert path == "/failing"
    assert app.load_limit is not None
    assert (app.load_limit.finished_in_all, app.load_limit.running) == (0, 0)


@in_virtual_time
async def test_who_hangs_up_leaves_no_request_running() -> None:
    app = site()
    going = request(app)
    await asyncio.sleep(0.01)
    assert app.load_limit is not None
    assert app.load_limit.running == 1
    going.task.cancel()
    await asyncio.gather(going.task, return_exceptions=True)
    assert (app.load_limit.finished_in_all, app.load_limit.running) == (0, 0)


@pytest.mark.parametrize("changed", [{"path": None}, {"path_params": ["x"]}, {"root_path": 7}])
@in_virtual_time
async def test_the_place_is_given_back_whatever_the_application_makes_of_its_scope(changed: dict[str, Any]) -> None:
    async def careless(scope: Scope, receive: Receive, send: Send) -> None:
        scope.update(changed)
        await PlainTextResponse("page")(scope, receive, send)

    app = ThrottleMiddleware(careless, limits=AUTO, clock=virtual_clock.now)
    assert (await request(app).finished()).status == 200
    assert app.load_limit is not None
    assert (app.load, app.load_limit.running) == (0, 0)


@in_virtual_time
async def test_a_stream_that_begins_twice_is_left_out_once() -> None:
    async def stammering(scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(start)
        await send(start)

    app = ThrottleMiddleware(stammering, limits=AUTO, clock=virtual_clock.now, count_streams=True)
    await request(app).finished()
    assert app.load_limit is not None
    assert (app.load, app.load_limit.running) == (0, 0)


@in_virtual_time
async def test_nothing_is_measured_where_the_limit_is_a_number() -> None:
    app = site(limits=Limits(load_max=7))
    await request(app).finished()
    assert app.load_limit is None
    assert app.load_max == 7


@in_virtual_time
async def test_the_number_in_force_is_shown() -> None:
    app = site()
    assert app.load_limit is not None
    assert app.load_max == app.load_limit.load_max >= 1
    assert str(app.load_limit).startswith(f"load_max is {app.load_max}: this process slows down from ")


@in_virtual_time
async def test_a_path_may_have_a_limit_that_is_found_where_the_site_has_a_number() -> None:
    app = site(limits=Limits(load_max=3), path_limits=[PathLimits("/page", AUTO)])
    assert (await request(app, agent=FEED_READER).finished()).status == 200
    assert app.load_max == 3
    assert app.load_limit is not None
    assert app.load_limit.finished_in_all == 1


@in_virtual_time
async def test_a_stop_wakes_who_sleeps_since_the_number_is_found_out_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Callable[[], object]] = []
    monkeypatch.setattr("throttle.server.middleware.on_stop_signal", told.append)
    config = tmp_path / "throttle.toml"
    config.write_text("[limits]\nload_max = 1\nstack_hits = 'off'\n")
    app = site(config=config)
    people = [request(app, "/read") for _ in range(20)]
    sleepers = [request(app, agent=FEED_READER)]
    await asyncio.sleep(2)
    config.write_text("[limits]\nload_max = 'auto'\nstack_hits = 'off'\n")
    sleepers += [request(app, agent=FEED_READER)]
    await asyncio.sleep(1)
    assert app.sleeping == 2
    assert app.load_limit is not None
    for act in told:
        act()
    assert [(await one.finished()).status for one in sleepers] == [503, 503]
    assert app.load == len(people)
    await asyncio.gather(*(one.finished() for one in people))
    assert (app.load, app.sleeping, app.load_limit.running) == (0, 0, 0)


@in_virtual_time
async def test_a_site_that_is_started_again_lets_bots_sleep_again() -> None:
    app = site()
    messages = [{"type": f"lifespan.{event}"} for event in ("startup", "shutdown", "startup")]

    async def lives(scope: Scope, receive: Receive, send: Send) -> None:
        while messages:
            await receive()

    async def told() -> Any:
        return messages.pop(0)

    app.app, served = lives, app.app
    await app({"type": "lifespan"}, told, None)  # type: ignore[arg-type]
    app.app = served
    people = [request(app, "/read") for _ in range(20)]
    await asyncio.sleep(1)
    bot = request(app, agent=FEED_READER)
    await asyncio.sleep(0.01)
    assert app.sleeping == 1
    await asyncio.gather(bot.finished(), *(one.finished() for one in people))


@in_virtual_time
async def test_in_a_dry_run_who_would_have_been_refused_runs_and_weighs_on_the_measure() -> None:
    app = site(limits=Limits(load_max="auto", stack_hits=1), enforce=False)
    await request(app).finished()
    running = [request(app) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert app.load_limit is not None
    assert app.load_limit.running == 3
    for one in running:
        assert (await one.finished()).status == 200
    assert (app.load_limit.finished_in_all, app.load_limit.running) == (1, 0)


@in_virtual_time
async def test_a_number_that_moves_far_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = site()
    limit = app.load_limit
    assert limit is not None
    with caplog.at_level(logging.INFO, "throttle"):
        for number in (limit.load_max, limit.load_max * 2, limit.load_max * 2 + 1):
            limit.load_max = number
            app._auto.tell()
    assert len(caplog.records) == 2


@in_virtual_time
async def test_a_slow_reader_holds_its_place_until_the_end_or_until_the_start_as_set() -> None:
    for release_at, load in (("end", 1), ("start", 0)):
        app = site(release_at=release_at)
        reading = request(app, "/read")
        await asyncio.sleep(5)
        assert app.store.load == load
        assert (await reading.finished()).body == b"begunended"
        assert app.store.load == 0


@in_virtual_time
async def test_streams_that_count_hold_their_place_even_where_others_leave_at_the_start() -> None:
    app = site(release_at="start", count_streams=True, limits=Limits())
    streaming = request(app, "/events")
    await asyncio.sleep(1.5)
    assert app.store.load == 1
    await streaming.finished()
    assert app.store.load == 0


def test_release_at_is_one_of_two() -> None:
    with pytest.raises(ValueError, match=r"""release_at='soon': "end" or "start" is needed"""):
        site(release_at="soon")


def test_what_costs_alike_is_the_route_or_the_first_segment_below_one_that_takes_all() -> None:
    def kind(path: str, /, **parameters: str) -> tuple[int, str]:
        return kind_of({"path": path, "endpoint": page, "path_params": parameters})

    assert kind("/items/1", name="1") == kind("/items/2", name="2")
    assert kind("/1", name="1") == kind("/2", name="2")
    assert kind("/wiki/a", path="wiki/a") == kind("/wiki/b", path="wiki/b") != kind("/cart/1", path="cart/1")
    number, name = {"path": "/7", "path_params": {"number": 7}}, "x" * 70
    assert kind_of(number) == kind_of({"path": "/8", "path_params": {"number": 8}})
    assert kind("/" + name, name=name) == kind("/y" + name, name="y" + name)
    assert kind_of({"path": "/a/1"}) == kind_of({"path": "/a/2"}) != kind_of({"path": "/b/1"})
    assert len(kind_of({"path": "/" + "x" * 100_000})[1]) <= 64


@in_virtual_time
async def test_what_other_rules_refuse_is_no_demand() -> None:
    app = site(limits=Limits(load_max="auto", stack_hits=1, sleeping_max=0))
    limit = app.load_limit
    assert limit is not None
    for _ in range(100):
        await request(app).finished()
    assert limit._arrived <= 1
    limit.load_max = 1
    running = [request(app, agent=f"{FEED_READER} {number}") for number in range(3)]
    await asyncio.gather(*(one.finished() for one in running))
    assert limit._arrived >= 3, "who is served, and who finds no room"
