"""Whom one worker has met, all workers of a shared store know."""

import asyncio
import secrets
import time

from tests.asgi import CHROME, FEED_READER, ask
from tests.fleet import Worker, on_a_server, until, workers
from tests.servers import Server
from throttle import Delay, Limits, ThrottleMiddleware
from throttle.server.acquaintances import Acquaintance
from throttle.server.stores.redis import RedisStore

SINCE = Acquaintance.of(3, 0.1, 60)
CALLER = 0xFEDC_BA98_7654_3210


def visit(worker: Worker, caller: int = CALLER) -> bool:
    return worker.note_visit(caller, now(), SINCE)


def knows(worker: Worker, caller: int = CALLER) -> bool:
    return worker.is_acquaintance(caller, now(), SINCE)


def now() -> int:
    return round(time.monotonic() * 1_000_000)


@on_a_server
async def test_visits_at_any_worker_count_at_all_soon(server: Server) -> None:
    async with workers(server, 3) as (one, two, three):
        for worker in (one, two, one):
            assert visit(worker)
            assert not knows(three)
            await asyncio.sleep(0.25)
        assert all(knows(worker) for worker in (one, two, three))
        assert not any(knows(worker, CALLER + 1) for worker in (one, two, three))


@on_a_server
async def test_a_visit_that_was_told_counts_once_and_is_not_told_again(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(2):
            assert visit(one)
            await asyncio.sleep(0.25)
        assert not knows(one)
        assert not knows(other)
        assert visit(one)
        await until(lambda: knows(other))
        assert not visit(other), "the same visit"


@on_a_server
async def test_a_worker_does_not_count_what_it_told_itself(server: Server) -> None:
    """However short the time between two visits may be."""
    since = Acquaintance.of(3, 1e-6, 60)
    async with workers(server, 1) as [one]:
        for _ in range(2):
            one.note_visit(CALLER, now(), since)
            await asyncio.sleep(0.05)
            await one.report()
        assert not one.is_acquaintance(CALLER, now(), since)


@on_a_server
async def test_what_another_tells_on_that_channel_is_left_alone_if_it_is_of_no_such_kind(server: Server) -> None:
    async with workers(server, 1) as [one]:
        with server.client() as client:
            assert client.publish(one.keys.visits, b"hello") == 1
            assert client.publish(one.keys.visits, b"") == 1
        assert await one.report()
        assert one.times_lost == 0


@on_a_server
async def test_a_feed_reader_that_was_served_at_one_site_of_two_is_no_stranger_at_the_other(server: Server) -> None:
    """Of three places strangers have two."""
    limits = Limits.modern(
        load_max=3, sleeping_max=0, acquaintance_apart_seconds=0.1, share_hits=None, defer_delay=Delay(0)
    )
    ended = asyncio.Event()

    async def page(scope: object, receive: object, send: object) -> None:
        if scope["path"] == "/slow":  # type: ignore[index]
            await ended.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    site = secrets.token_hex(8)
    stores = [RedisStore(server.url, site=site, time_box=5) for _ in range(2)]
    one, other = (ThrottleMiddleware(page, store=store, limits=limits, reverse_dns=False) for store in stores)
    for store in stores:
        assert await store.ready()
    for _ in range(3):
        assert (await ask(one, agent=FEED_READER)).status == 200
        await asyncio.sleep(0.25)
    people = [asyncio.ensure_future(ask(other, "/slow", agent=CHROME)) for _ in range(2)]
    await until(lambda: stores[0].load == stores[1].load == 2)
    assert (await ask(other, agent=FEED_READER)).status == 200
    assert (await ask(other, agent=FEED_READER, client="192.0.2.99")).status == 503
    ended.set()
    await asyncio.gather(*people)
    for store in stores:
        store.close()
    await asyncio.sleep(0)
