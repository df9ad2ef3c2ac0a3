"""A dry run changes no answer, and counts what would have been (the second half of promise 11)."""

import asyncio
import logging
import random
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests import virtual_clock
from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, Request, ask, http_scope
from tests.server.site import Gate, site
from tests.virtual_clock import run
from throttle import Delay, Limits, MemoryStore, ThrottleMiddleware


def test_nobody_is_refused_or_told_anything_and_what_would_have_been_is_counted() -> None:
    async def story() -> None:
        app = site(enforce=False, banned_agents=["BadReader"])
        answers = [await ask(app) for _ in range(14)]
        assert {answer.status for answer in answers} == {200}
        assert not any("ratelimit" in name for answer in answers for name in answer.fields)
        assert (await ask(app, agent="badreader/1.0")).status == 200
        assert app.counts()["browser"] == {"served": 10, "slept": 0, "hung_up": 0, "refused": {"hit_stack": 4}}
        assert app.counts()["assumed bot"]["refused"] == {"banned": 1}

    run(story())


def test_who_would_have_met_a_pause_counts_as_refused_and_not_as_served() -> None:
    async def story() -> None:
        store = MemoryStore(clock=virtual_clock.now)
        app = site(enforce=False, store=store)
        store.pause(60)
        assert [(await ask(app)).status for _ in range(12)] == [200] * 12
        store.resume()
        assert (await ask(app)).status == 200
        assert app.counts()["browser"] == {"served": 1, "slept": 0, "hung_up": 0, "refused": {"service_paused": 12}}

    run(story())


def test_nobody_sleeps_and_who_would_have_slept_counts_as_that() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=1), enforce=False)
        person = Request(app, http_scope("/slow"))
        await asyncio.sleep(0)
        before = virtual_clock.now()
        assert (await ask(app, agent=FEED_READER)).status == 200
        assert virtual_clock.now() == before
        assert (store.load, store.sleeping) == (1, 1)  # its shadow sleeps on
        await asyncio.sleep(2)
        await asyncio.sleep(0)
        counted = app.counts()["assumed bot"]
        assert (counted["slept"], counted["refused"]) == (1, {"load_defer": 1})
        gate.opened.set()
        await person.finished()
        assert (store.load, store.sleeping) == (0, 0)

    run(story())


def test_the_would_be_refused_do_not_weigh_on_the_would_be_load() -> None:
    async def story() -> None:
        gate, store = Gate(), MemoryStore()
        app = site(gate, store=store, limits=Limits(load_max=2, sleeping_max=0), enforce=False)
        bots = [Request(app, http_scope("/slow", agent=FEED_READER, client=f"192.0.2.{n}")) for n in range(9)]
        await asyncio.sleep(0)
        assert gate.running == 9
        assert store.load == 2
        gate.opened.set()
        for request in bots:
            assert (await request.finished()).status == 200
        assert store.load == 0

    run(story())


def test_a_would_be_sleeper_holds_its_place_as_long_as_its_request_took() -> None:
    async def story() -> None:
        async def page(request: StarletteRequest) -> PlainTextResponse:
            await asyncio.sleep(float(request.query_params["s"]))
            return PlainTextResponse("")

        store = MemoryStore()
        inner = Starlette(routes=[Route("/", page)])
        app = ThrottleMiddleware(inner, store=store, limits=Limits(load_max=1), enforce=False, clock=virtual_clock.now)
        person = Request(app, http_scope(query_string=b"s=1.5"))
        await asyncio.sleep(0)
        bot = Request(app, http_scope(agent=FEED_READER, query_string=b"s=1"))
        await bot.finished()  # at 1.0; its shadow wakes at 1.5 and runs until 2.5
        await person.finished()
        await asyncio.sleep(0.9)
        assert store.load == 1
        await asyncio.sleep(0.2)
        assert store.load == 0
        assert app.counts()["assumed bot"]["served"] == 1

    run(story())


def test_it_is_logged_as_a_dry_run(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        app = site(enforce=False, limits=Limits(stack_hits=1))
        await ask(app)
        await ask(app)
        app._refusals.close()

    with caplog.at_level(logging.INFO, logger="throttle.refused"):
        run(story())
    assert "1 by hit_stack (dry run)" in caplog.text


def test_who_would_have_been_refused_after_a_sleep_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, enforce=False, limits=Limits(load_max=1, defer_delay=Delay(maximum=1)))
        person = Request(app, http_scope("/slow"))
        await asyncio.sleep(0)
        await ask(app, agent="FeedReader/1.0", client="192.0.2.7")
        await asyncio.sleep(2)
        gate.opened.set()
        await person.finished()
        app._refusals.close()

    with caplog.at_level(logging.INFO, logger="throttle.refused"):
        run(story())
    assert "1 by load_defer (dry run); most often FeedReader at 192.0.2.7 (1)" in caplog.text


def test_in_a_pause_who_would_have_been_refused_is_not_counted_as_served_too() -> None:
    async def story() -> None:
        app = site(enforce=False, limits=Limits(paused=True))
        assert (await ask(app)).status == 200
        assert app.counts()["browser"] == {"served": 0, "slept": 0, "hung_up": 0, "refused": {"service_paused": 1}}

    run(story())


def test_a_request_that_outlasts_the_shutdown_ends_well() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, enforce=False, limits=Limits(load_max=1))
        person = Request(app, http_scope("/slow"))
        await asyncio.sleep(0)
        bot = Request(app, http_scope("/slow", agent=FEED_READER))
        await asyncio.sleep(0)
        app.store.release()  # there is room: its shadow is served
        await asyncio.sleep(0.1)
        app._dry_run.close()
        await asyncio.sleep(0)
        gate.opened.set()
        assert (await bot.finished()).status == (await person.finished()).status == 200

    run(story())


SHARES = {"browser": (CHROME, 40, 0.2), "assumed bot": (FEED_READER, 25, 0.6), "known crawler": (GOOGLEBOT, 6, 0.2)}


async def traffic(seed: int, *, enforce: bool) -> dict[str, dict[str, Any]]:
    """Five minutes of seeded traffic at twice what the load gate lets through: what became of it."""
    dice = random.Random(seed)

    async def page(request: StarletteRequest) -> PlainTextResponse:
        await asyncio.sleep(float(request.query_params["s"]))
        return PlainTextResponse("")

    app = ThrottleMiddleware(
        Starlette(routes=[Route("/", page)]),
        limits=Limits(load_max=8),
        enforce=enforce,
        clock=virtual_clock.now,
        random=random.Random(seed).random,
    )
    requests = []
    for _ in range(6000):
        kind = dice.choices(list(SHARES), [share for _, _, share in SHARES.values()])[0]
        agent, callers, _ = SHARES[kind]
        scope = http_scope(
            agent=agent,
            client=f"192.0.2.{dice.randrange(callers)}",
            query_string=f"s={dice.expovariate(1 / 0.9):.3f}".encode(),
        )
        requests.append(Request(app, scope))
        await asyncio.sleep(dice.expovariate(20))
    for request in requests:
        await request.finished()
    await asyncio.sleep(60)
    assert (app.store.load, app.store.sleeping) == (0, 0)
    return app.counts()


def test_a_dry_run_tells_within_two_points_what_enforcing_would_refuse_by_class() -> None:
    for seed in (1, 2):
        enforced = run(traffic(seed, enforce=True))
        rehearsed = run(traffic(seed, enforce=False))
        for kind in SHARES:
            shares = []
            for counts in (enforced[kind], rehearsed[kind]):
                refused = sum(counts["refused"].values())
                shares.append(refused / (refused + counts["served"]))
            assert abs(shares[0] - shares[1]) <= 0.02, (kind, shares)
        assert sum(enforced["assumed bot"]["refused"].values()) > 100
