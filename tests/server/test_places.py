"""Promise 4, no place leaks: whatever way a request ends, its place in the load is given back.

And the sleepers: who waits, who wakes first, what a wait ends with.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests import virtual_clock
from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, Request, ask, http_scope
from tests.server.site import Gate, site
from tests.virtual_clock import run
from throttle import Delay, Limits, MemoryStore, PathLimits, ThrottleMiddleware

Send = Callable[[dict[str, Any]], Awaitable[None]]
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
STREAM = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


def body(more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": b"x", "more_body": more}


async def returns(receive: Any, send: Send) -> None:
    await send(START)
    await send(body())


async def fails_before_the_start(receive: Any, send: Send) -> None:
    raise ZeroDivisionError


async def fails_after_the_start(receive: Any, send: Send) -> None:
    await send(START)
    raise ZeroDivisionError


async def streams(receive: Any, send: Send) -> None:
    await send(START)
    for _ in range(3):
        await asyncio.sleep(1)
        await send(body(more=True))
    await send(body())


async def waits_for_ever(receive: Any, send: Send) -> None:
    await asyncio.get_running_loop().create_future()


async def waits_for_ever_in_the_body(receive: Any, send: Send) -> None:
    await send(START)
    await send(body(more=True))
    await asyncio.get_running_loop().create_future()


async def hears_the_hang_up(receive: Any, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def works_on_after_the_answer(receive: Any, send: Send) -> None:
    await returns(receive, send)
    await asyncio.sleep(5)


async def sends_events(receive: Any, send: Send) -> None:
    await send(STREAM)
    await send(body(more=True))
    await asyncio.sleep(5)
    await send(body())


async def never_answers(receive: Any, send: Send) -> None:
    return None


ENDS = [
    returns,
    fails_before_the_start,
    fails_after_the_start,
    streams,
    hears_the_hang_up,
    works_on_after_the_answer,
    sends_events,
    never_answers,
]


def wrapped(inner: Any, **settings: Any) -> tuple[ThrottleMiddleware, MemoryStore]:
    async def app(scope: Any, receive: Any, send: Send) -> None:
        await inner(receive, send)

    store = MemoryStore()
    return ThrottleMiddleware(app, store=store, clock=virtual_clock.now, **settings), store


async def ended(request: Request) -> None:
    await asyncio.gather(request.task, return_exceptions=True)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_place_is_given_back_when_the_application(end: Any) -> None:
    async def story() -> None:
        app, store = wrapped(end)
        request = Request(app, http_scope())
        await asyncio.sleep(0)
        request.hang_up()
        await ended(request)
        assert store.load == 0

    run(story())


@pytest.mark.parametrize("stuck", [waits_for_ever, waits_for_ever_in_the_body, streams, works_on_after_the_answer])
def test_a_place_is_given_back_when_the_request_is_cancelled_while_the_application(stuck: Any) -> None:
    async def story() -> None:
        app, store = wrapped(stuck)
        request = Request(app, http_scope())
        await asyncio.sleep(0.5)
        assert store.load == 1
        request.task.cancel()
        await ended(request)
        assert store.load == 0

    run(story())


def test_a_place_is_given_back_when_the_server_cannot_send() -> None:
    async def story() -> None:
        app, store = wrapped(returns)

        async def broken(message: Any) -> None:
            raise OSError("the caller is gone")

        with pytest.raises(OSError, match="gone"):
            await app(http_scope(), None, broken)  # type: ignore[arg-type]
        assert store.load == 0

    run(story())


def test_a_download_holds_its_place_to_the_last_byte_and_a_background_task_to_its_end() -> None:
    async def chunks() -> Any:
        for _ in range(4):
            await asyncio.sleep(1)
            yield b"x"

    async def story() -> None:
        store = MemoryStore()
        task = BackgroundTask(asyncio.sleep, 10)
        inner = Starlette(
            routes=[
                Route("/stream", _endpoint(lambda: StreamingResponse(chunks()))),
                Route("/task", _endpoint(lambda: PlainTextResponse("", background=task))),
            ]
        )
        app = ThrottleMiddleware(inner, store=store, clock=virtual_clock.now)
        for path, seconds in (("/stream", 4), ("/task", 10)):
            request = Request(app, http_scope(path))
            await asyncio.sleep(seconds - 0.5)
            assert store.load == 1, path
            await request.finished()
            assert store.load == 0, path

    run(story())


def _endpoint(answer: Callable[[], Any]) -> Any:
    async def endpoint(request: Any) -> Any:
        return answer()

    return endpoint


def test_event_streams_and_websockets_leave_the_count_when_their_answer_starts_unless_told_otherwise() -> None:
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await asyncio.sleep(5)

    async def story(count_streams: bool) -> None:
        app, store = wrapped(sends_events, count_streams=count_streams)
        request = Request(app, http_scope())
        await asyncio.sleep(1)
        assert store.load == int(count_streams)
        await request.finished()
        assert store.load == 0

        sockets = Starlette(routes=[WebSocketRoute("/", socket)])
        app = ThrottleMiddleware(sockets, store=store, clock=virtual_clock.now, count_streams=count_streams)
        connection = Request(app, http_scope(type="websocket"))
        connection._incoming = [{"type": "websocket.connect"}]
        await asyncio.sleep(1)
        assert store.load == int(count_streams)
        await connection.task
        assert store.load == 0

    run(story(False))
    run(story(True))


def test_the_count_is_zero_after_ten_thousand_random_endings() -> None:
    async def story() -> None:
        dice = random.Random(7)
        store = MemoryStore()
        running: list[Request] = []
        leaving: list[Request] = []

        async def app(scope: Any, receive: Any, send: Send) -> None:
            await scope["end"](receive, send)

        throttled = ThrottleMiddleware(
            app,
            store=store,
            clock=virtual_clock.now,
            limits=Limits(stack_hits=None, lone_crawler_seconds=None, all_crawlers_seconds=None),
        )
        ends = [*ENDS, waits_for_ever, waits_for_ever_in_the_body]
        for _ in range(10_000):
            agent = dice.choice([CHROME, FEED_READER, GOOGLEBOT])
            running.append(Request(throttled, http_scope(agent=agent, end=dice.choice(ends))))
            await asyncio.sleep(dice.choice([0, 0, 0, 0.3]))
            if len(running) > 30:
                request = running.pop(dice.randrange(len(running)))
                leaving.append(request)
                if dice.random() < 0.5:
                    request.hang_up()
                else:
                    request.task.cancel()
        for request in running + leaving:
            request.hang_up()
            request.task.cancel()
        await asyncio.gather(*(ended(request) for request in running + leaving))
        await asyncio.sleep(60)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others
        assert (store.load, store.sleeping) == (0, 0)

    run(story())


# Sleepers


async def fill(app: Any, places: int) -> list[Request]:
    """That many people on the slow page."""
    requests = [Request(app, http_scope("/slow", client=f"198.51.100.{n}")) for n in range(places)]
    await asyncio.sleep(0)
    return requests


def bot(app: Any, agent: str = FEED_READER, client: str = "192.0.2.50", path: str = "/", **more: Any) -> Request:
    return Request(app, http_scope(path, agent=agent, client=client), **more)


def test_promise_1_a_browser_is_never_refused_or_delayed_because_of_load() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=2))
        people = await fill(app, 2)
        bots = [bot(app, client=f"192.0.2.{n}") for n in range(50)]
        await asyncio.sleep(0)
        before = virtual_clock.now()
        assert (await ask(app)).status == 200
        assert virtual_clock.now() == before
        gate.opened.set()
        for request in people + bots:
            await request.finished()

    run(story())


def test_a_bot_sleeps_while_fifteen_others_run_and_wakes_as_soon_as_there_is_room() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store)
        people = await fill(app, 14)
        assert (await bot(app).finished()).status == 200
        people += [Request(app, http_scope("/slow", client="198.51.100.99"))]
        await asyncio.sleep(0)
        sleeper = bot(app)
        await asyncio.sleep(3)
        assert (store.load, store.sleeping) == (15, 1)
        people[0].task.cancel()
        assert (await sleeper.finished()).status == 200
        assert virtual_clock.now() == 1003
        assert sleeper.answer.fields["server-timing"] == 'throttle;desc="slept";dur=3000'
        gate.opened.set()
        await asyncio.gather(*(ended(request) for request in people))
        assert (store.load, store.sleeping) == (0, 0)

    run(story())


def test_a_sleeper_that_finds_no_room_is_refused_when_its_delay_is_over() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=15, wait_told=Delay(2, 1, 0, 60)))
        people = await fill(app, 15)
        answer = await bot(app).finished()
        assert virtual_clock.now() == 1016  # the load, this one included, times 1 s
        assert (answer.status, answer.retry_after) == (503, 33)
        gate.opened.set()
        await asyncio.gather(*(ended(request) for request in people))

    run(story())


def test_the_waits_told_for_load_are_spread() -> None:
    async def story() -> None:
        gate, dice = Gate(), random.Random(1)
        app = site(gate, limits=Limits(load_max=15, sleeping_max=0), random=dice.random)
        people = await fill(app, 15)
        told = {(await bot(app, client=f"192.0.2.{n}").finished()).retry_after for n in range(50)}
        assert min(told) >= 16
        assert max(told) <= 24
        assert len(told) > 5
        gate.opened.set()
        await asyncio.gather(*(ended(request) for request in people))

    run(story())


def test_at_most_ten_sleep_and_the_eleventh_is_refused_at_once() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store)
        people = await fill(app, 15)
        sleepers = [bot(app, client=f"192.0.2.{n}") for n in range(10)]
        await asyncio.sleep(0)
        assert store.sleeping == 10
        before = virtual_clock.now()
        assert (await bot(app).finished()).status == 503
        assert virtual_clock.now() == before
        gate.opened.set()
        for request in people + sleepers:
            assert (await request.finished()).status == 200

    run(story())


def test_api_clients_and_feed_readers_wake_before_crawlers_and_else_who_came_first() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=1, all_crawlers_seconds=None, lone_crawler_seconds=None))
        served: list[str] = []
        (person,) = await fill(app, 1)
        waiting = []
        for name, agent in [("crawler 1", GOOGLEBOT), ("reader 1", FEED_READER), ("crawler 2", GOOGLEBOT)]:
            waiting.append(bot(app, agent, client=f"192.0.2.{len(waiting)}"))
            waiting[-1].task.add_done_callback(lambda _, name=name: served.append(name))
            await asyncio.sleep(0.1)
        waiting.append(bot(app, FEED_READER, client="192.0.2.77"))
        waiting[-1].task.add_done_callback(lambda _: served.append("reader 2"))
        await asyncio.sleep(0.1)
        gate.opened.set()
        for request in [person, *waiting]:
            assert (await request.finished()).status == 200
        await asyncio.sleep(0)
        assert served == ["reader 1", "reader 2", "crawler 1", "crawler 2"]

    run(story())


def test_a_sleeper_without_room_does_not_keep_those_asleep_for_whom_there_is() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=3), path_limits=[PathLimits("/dear", Limits(load_max=1))])
        people = await fill(app, 3)
        dear = bot(app, path="/dear")
        await asyncio.sleep(1)
        cheap = bot(app, GOOGLEBOT, client="192.0.2.51")
        await asyncio.sleep(1)
        people[0].task.cancel()
        assert (await cheap.finished()).status == 200
        assert virtual_clock.now() == 1002
        gate.opened.set()
        assert (await dear.finished()).status == 200
        await asyncio.gather(*(ended(request) for request in people))

    run(story())


def test_nobody_who_comes_later_takes_the_room_of_a_sleeper_that_was_woken() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=1, sleeping_max=1))
        (person,) = await fill(app, 1)
        sleeper = bot(app, path="/slow")
        await asyncio.sleep(1)
        person.task.cancel()
        latecomer = bot(app, client="192.0.2.51")  # starts before the sleeper's turn comes
        assert (await latecomer.finished()).status == 503
        gate.opened.set()
        assert (await sleeper.finished()).status == 200
        await ended(person)

    run(story())


def test_a_woken_sleeper_that_another_rule_refuses_wakes_the_next() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        (person,) = await fill(app, 1)
        first, second = bot(app, "bingbot/2.0"), bot(app, GOOGLEBOT, client="192.0.2.51")
        third = bot(app, GOOGLEBOT, client="192.0.2.52")
        await asyncio.sleep(1)
        gate.opened.set()
        # The first takes the crawlers' clock; the others, woken in turn, are refused by it, and nobody is left asleep.
        assert (await first.finished()).status == 200
        for other in (second, third):
            assert (await other.finished()).status == 503
            assert other.answer.retry_after == 2
        await person.finished()
        assert (store.load, store.sleeping) == (0, 0)

    run(story())


def test_a_sleeper_whose_room_a_person_took_goes_on_sleeping_in_its_place() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        (person,) = await fill(app, 1)
        sleeper = bot(app)
        await asyncio.sleep(1)
        person.task.cancel()
        other = Request(app, http_scope("/slow", client="198.51.100.88"))
        await asyncio.sleep(0.5)
        assert (store.load, store.sleeping) == (1, 1)
        gate.opened.set()
        assert (await sleeper.finished()).status == 200
        await other.finished()
        await ended(person)

    run(story())


@pytest.mark.parametrize("how", ["hangs up", "is cancelled", "hangs up just when it is woken"])
def test_a_sleeper_leaves_at_once_when_its_caller(how: str) -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        (person,) = await fill(app, 1)
        leaving, staying = bot(app), bot(app, client="192.0.2.51")
        await asyncio.sleep(1)
        assert store.sleeping == 2
        if how == "is cancelled":
            leaving.task.cancel()
        else:
            leaving.hang_up()
        if how == "hangs up just when it is woken":
            gate.opened.set()
        await ended(leaving)
        assert leaving.answer.messages == []
        assert virtual_clock.now() == 1001
        assert store.sleeping <= 1
        gate.opened.set()
        assert (await staying.finished()).status == 200
        await person.finished()
        await asyncio.sleep(0)
        assert (store.load, store.sleeping) == (0, 0)
        assert not asyncio.all_tasks() - {asyncio.current_task()}

    run(story())


def test_a_server_that_fails_while_a_request_sleeps_is_heard_and_its_sleeper_leaves() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        (person,) = await fill(app, 1)

        async def receive() -> Any:
            raise OSError("the socket broke")

        with pytest.raises(OSError, match="broke"):
            await app(http_scope(agent=FEED_READER), receive, None)  # type: ignore[arg-type]
        assert (store.load, store.sleeping) == (1, 0)
        gate.opened.set()
        await person.finished()

    run(story())


def test_a_sleeper_that_wakes_in_a_pause_is_refused_for_it_and_no_clock_starts() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore(clock=virtual_clock.now)
        app = site(gate, store=store, limits=Limits(load_max=1, pause_exempt=("192.0.2.60",)))
        (person,) = await fill(app, 1)
        crawler, exempt = bot(app, GOOGLEBOT), bot(app, client="192.0.2.60")
        await asyncio.sleep(1)
        store.pause(5)
        gate.opened.set()
        assert (await crawler.finished()).status == 503
        assert crawler.answer.retry_after == 5
        assert (await exempt.finished()).status == 200
        await person.finished()
        assert (store.load, store.sleeping) == (0, 0)
        store.resume()
        assert (await bot(app, GOOGLEBOT).finished()).status == 200

    run(story())


def test_at_shutdown_all_sleepers_wake_and_are_refused() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        (person,) = await fill(app, 1)
        sleepers = [bot(app, client=f"192.0.2.{n}") for n in range(3)]
        await asyncio.sleep(1)

        await tell(app, "shutdown")
        for request in sleepers:
            assert (await request.finished()).status == 503
        assert virtual_clock.now() == 1001
        assert store.sleeping == 0
        gate.opened.set()
        await person.finished()

    run(story())


def test_a_site_that_is_started_again_after_its_shutdown_lets_sleep_as_before() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1))
        for _ in range(2):
            await tell(app, "startup")
            gate.opened.clear()
            (person,) = await fill(app, 1)
            waits, leaves = (bot(app, client=f"192.0.2.{n}") for n in range(2))
            await asyncio.sleep(1)
            assert store.sleeping == 2
            leaves.hang_up()
            await leaves.finished()
            gate.opened.set()
            assert (await waits.finished()).status == 200
            await person.finished()
            await tell(app, "shutdown")
            assert (store.load, store.sleeping) == (0, 0)
            await asyncio.sleep(60)

    run(story())


async def tell(app: ThrottleMiddleware, event: str) -> None:
    """What a server tells when an application starts or ends."""

    async def receive() -> dict[str, str]:
        return {"type": f"lifespan.{event}"}

    async def lifespan(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    app.app, inner = lifespan, app.app
    await app({"type": "lifespan"}, receive, None)  # type: ignore[arg-type]
    app.app = inner


def test_nothing_of_a_body_is_lost_while_its_request_sleeps() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=1))
        for chunks in ([b"one"], [b"one ", b"two ", b"three"], [b"x" * 70_000, b"y" * 70_000, b"z"]):
            gate.opened.clear()
            (person,) = await fill(app, 1)
            scope = http_scope("/echo", agent=FEED_READER, method="POST")
            sleeper = Request(app, scope, chunks)
            await asyncio.sleep(1)
            gate.opened.set()
            assert (await sleeper.finished()).body == b"".join(chunks)
            await person.finished()
            await asyncio.sleep(0)
        assert not asyncio.all_tasks() - {asyncio.current_task()}

    run(story())


def test_a_sleeping_request_does_not_add_to_the_load() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=2))
        people = await fill(app, 2)
        sleepers = [bot(app, client=f"192.0.2.{n}") for n in range(5)]
        await asyncio.sleep(1)
        assert (store.load, store.sleeping) == (2, 5)
        gate.opened.set()
        for request in people + sleepers:
            await request.finished()

    run(story())
