"""What every adapter must do, over real sockets. Waits are of some 20 ms; only lower bounds of time are asserted."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any, TypeVar

import pytest

from tests.client.adapters import KINDS, Asker, Kind
from tests.client.loopback import PIECE, Site, site
from throttle.client import Backoff, HostRests, HostStopped, Politeness, Rates, WaitedTooLong
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace

T = TypeVar("T")
REST = 0.05  # seconds that a host rests after a refusal which tells none


def aimd(rates: Rates) -> Pace:
    """Steady, so that its waits can be worked out: after a drop, half the rate, and a rest of 1 / rate."""
    return AimdPace(rate=rates.start, in_flight_max=rates.in_flight)


def in_real_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test as a plain one, with a patience that only a hang exceeds."""

    def run_test(kind: Kind, server: Site) -> None:
        asyncio.run(asyncio.wait_for(test(kind, server), 15))

    run_test.__name__, run_test.__doc__ = test.__name__, test.__doc__
    return run_test


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    made: Kind = request.param
    return made


@pytest.fixture
def server() -> Iterator[Site]:
    with site() as opened:
        yield opened


@asynccontextmanager
async def opened(kind: Kind, *, rate: float = 1000.0, in_flight: int = 50, **settings: Any) -> AsyncIterator[Asker]:
    settings.setdefault("politeness", Politeness(backoff=Backoff(retries_max=0)))
    asker = kind.open(pace=aimd, rates=Rates(start=rate, in_flight=in_flight), random=Random(1), **settings)
    try:
        yield asker
        assert_nothing_is_held(asker)
    finally:
        await asker.close()


def assert_nothing_is_held(asker: Asker) -> None:
    for name, host in asker.hosts.stats(0.0).items():
        assert (host.in_flight, host.waiting) == (0, 0), name
    transport = getattr(asker, "transport", None)
    assert transport is None or not any(pool.count for pool in transport.pools._pools.values())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # it is another thread that makes it true
        await asyncio.sleep(0.001)


@in_real_time
async def test_what_is_asked_is_answered(kind: Kind, server: Site) -> None:
    async with opened(kind) as asker:
        assert await asker.ask(f"{server.url}/hello") == (200, b"hello")
        assert await asker.ask(f"{server.url}/echo", "POST", b"a book") == (200, b"a book")
        assert asker.hosts.stats(0.0)[server.name].statuses == {"200": 2}


@in_real_time
async def test_requests_leave_at_the_hosts_pace(kind: Kind, server: Site) -> None:
    async with opened(kind, rate=100.0) as asker:
        started = time.monotonic()
        await asyncio.gather(*(asker.ask(f"{server.url}/hello") for _ in range(8)))
    # AIMD rises by half a request a second with each second of success: hardly, here.
    assert server.asked[-1].at - started >= 7 / 101


@in_real_time
async def test_after_a_refusal_nothing_leaves_until_the_rest_is_over(kind: Kind, server: Site) -> None:
    async with opened(kind, rate=1 / REST, in_flight=1) as asker:
        host = asker.hosts.host(server.name, 0.0)
        host.bucket.capacity = host.pace.capacity = 10.0
        host.bucket.tokens = 10.0
        tasks = [asyncio.create_task(asker.ask(f"{server.url}/times/1/503")) for _ in range(5)]
        answers = await asyncio.gather(*tasks)
    assert sorted(status for status, _ in answers) == [200, 200, 200, 200, 503]
    refused, scout = server.asked[0].at, server.asked[1].at
    assert scout - refused >= REST


@in_real_time
async def test_a_longer_rest_than_may_be_waited_fails_as_the_clients_own_error(kind: Kind, server: Site) -> None:
    server.retry_after = "3600"
    politeness = Politeness(wait_max=60, backoff=Backoff(retries_max=3))
    async with opened(kind, politeness=politeness) as asker:
        assert (await asker.ask(f"{server.url}/times/9/429"))[0] == 429
        for _ in range(3):
            with pytest.raises(HostRests) as rests:
                await asker.ask(f"{server.url}/hello")
            assert isinstance(rests.value, kind.own_error)
            assert rests.value.seconds > 3590
    assert server.paths() == ["/times/9/429"]


@in_real_time
async def test_a_wait_may_be_limited(kind: Kind, server: Site) -> None:
    async with (
        opened(kind, in_flight=1, politeness=Politeness(turn_max=0.03)) as asker,
        asker.streamed(f"{server.url}/held"),
    ):
        with pytest.raises(WaitedTooLong) as late:
            await asker.ask(f"{server.url}/hello")
        assert isinstance(late.value, kind.own_error)
        server.let_go()
    assert server.paths() == ["/held"]


@in_real_time
async def test_the_slot_is_held_until_the_body_is_closed(kind: Kind, server: Site) -> None:
    async with opened(kind, in_flight=1) as asker:
        async with asker.streamed(f"{server.url}/held") as (status, _):
            assert status == 200
            second = asyncio.create_task(asker.ask(f"{server.url}/hello"))
            await asyncio.sleep(0.03)
            assert server.paths() == ["/held"]
        assert await second == (200, b"hello")


@in_real_time
async def test_a_body_that_was_read_holds_nothing(kind: Kind, server: Site) -> None:
    async with opened(kind, in_flight=1) as asker:
        async with asker.streamed(f"{server.url}/stream/300") as (_, chunks):
            body = b"".join([chunk async for chunk in chunks])
        assert body == 300 * PIECE
        assert await asker.ask(f"{server.url}/hello") == (200, b"hello")


@in_real_time
async def test_no_more_are_open_at_once_than_slots(kind: Kind, server: Site) -> None:
    async with opened(kind, rate=1e6, in_flight=3) as asker:
        answers = await asyncio.gather(*(asker.ask(f"{server.url}/hello") for _ in range(40)))
    assert answers == 40 * [(200, b"hello")]
    assert server.open_most <= 3


@in_real_time
async def test_a_body_that_is_made_as_it_is_sent_arrives_whole(kind: Kind, server: Site) -> None:
    pieces = [bytes([65 + turn]) * 5000 for turn in range(20)]
    async with opened(kind) as asker:
        assert await asker.upload(f"{server.url}/echo", pieces) == (200, b"".join(pieces))


@in_real_time
async def test_a_refused_page_is_asked_for_again_and_a_stream_is_not(kind: Kind, server: Site) -> None:
    politeness = Politeness(backoff=Backoff(retries_max=3), retry_methods=frozenset({"GET", "PUT", "POST"}))
    async with opened(kind, rate=1 / 0.02, politeness=politeness) as asker:
        assert await asker.ask(f"{server.url}/times/1/503") == (200, b"hello")
        assert [asked.target for asked in server.asked] == 2 * ["/times/1/503"]
        if kind.sees_bytes:
            assert (await asker.ask(f"{server.url}/times/1/429", "PUT", b"twice"))[0] == 200
            assert [asked.body for asked in server.asked[2:]] == 2 * [b"twice"]
        assert (await asker.upload(f"{server.url}/times/2/503", [b"once"]))[0] == 503
        assert server.paths()[-1] == "/times/2/503"
        assert asker.hosts.stats(0.0)[server.name].retries == (2 if kind.sees_bytes else 1)


@in_real_time
async def test_a_connection_that_breaks_is_tried_again_and_then_is_the_clients_own_error(
    kind: Kind, server: Site
) -> None:
    politeness = Politeness(backoff=Backoff(retries_max=2, base_seconds=0.001))
    async with opened(kind, rate=1 / 0.01, politeness=politeness) as asker:
        assert await asker.ask(f"{server.url}/reset/1") == (200, b"hello")
        if kind.sees_each_hop:  # aiohttp itself asks once more, where nobody is between
            assert asker.hosts.stats(0.0)[server.name].statuses["connection error"] >= 1
    async with opened(kind, rate=1 / 0.01) as asker:
        with pytest.raises(Exception) as broken:  # noqa: PT011  # each client has its own
            await asker.ask(f"{server.url}/reset/50", "POST")
        assert isinstance(broken.value, kind.own_error)


@in_real_time
async def test_each_hop_of_a_redirect_passes_its_own_host(kind: Kind, server: Site) -> None:
    if not kind.sees_each_hop:
        pytest.skip("this client follows redirects by itself, unseen")
    with site() as other:
        async with opened(kind) as asker:
            assert await asker.ask(f"{server.url}/redirect?{other.url}/hello") == (200, b"hello")
            statuses = {name: host.statuses for name, host in asker.hosts.stats(0.0).items()}
            assert statuses == {server.name: {"302": 1}, other.name: {"200": 1}}


@in_real_time
async def test_a_block_stops_the_host_and_its_answer_is_whole(kind: Kind, server: Site) -> None:
    if kind.name == "wrapped":
        pytest.skip("the body of a client that is not known is not looked into")
    async with opened(kind) as asker:
        status, body = await asker.ask(f"{server.url}/block")
        assert status == 429
        assert b"abnormal-usage-detected" in body
        with pytest.raises(HostStopped) as stopped:
            await asker.ask(f"{server.url}/hello")
        assert isinstance(stopped.value, kind.own_error)


class CancelledAt:
    """Awaits what it is given, and is cancelled when that waits for the n-th time, counted from 0."""

    def __init__(self, waited_for: Coroutine[Any, Any, T], turn: int) -> None:
        self._waited_for = waited_for
        self._turn = turn

    def __await__(self) -> Generator[Any, None, Any]:
        steps = self._waited_for.__await__()
        resume: Callable[[], Any] = partial(next, steps)
        for turn in range(1_000_000):
            try:
                waits_for = resume()
            except StopIteration as stop:
                return stop.value
            if turn == self._turn:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waits_for
            except BaseException as error:
                resume = partial(steps.throw, error)
            else:
                resume = partial(next, steps)
        raise AssertionError("it never ends")


@in_real_time
async def test_a_request_that_is_cancelled_at_any_await_gives_everything_back(kind: Kind, server: Site) -> None:
    if kind.is_blocking:
        pytest.skip("a thread cannot be cancelled")
    politeness = Politeness(backoff=Backoff(retries_max=2, base_seconds=0.001))

    async def read_all(asker: Asker, path: str) -> None:
        async with asker.streamed(server.url + path) as (_, chunks):
            async for _ in chunks:
                pass

    for path in ("/stream/3", "/times/1/503?{turn}", "/reset/1?{turn}"):
        was_cancelled, turn = True, 0
        while was_cancelled:
            # A pace at which the second request has to wait for its turn.
            async with opened(kind, rate=500.0, in_flight=1, politeness=politeness) as asker:
                await asker.ask(f"{server.url}/hello")

                async def attempt(asker: Asker = asker, path: str = path, turn: int = turn) -> None:
                    await CancelledAt(read_all(asker, path.format(turn=turn)), turn)

                task = asyncio.create_task(attempt())
                await asyncio.wait([task])
                was_cancelled = task.cancelled()
                assert_nothing_is_held(asker)
                assert await asker.ask(f"{server.url}/hello") == (200, b"hello")
            turn += 1
        assert turn >= 2  # the answer's head and its turn, at least


@in_real_time
async def test_who_waits_and_is_cancelled_leaves_the_queue_in_order(kind: Kind, server: Site) -> None:
    if kind.is_blocking:
        pytest.skip("a thread cannot be cancelled")
    async with opened(kind, in_flight=1) as asker:
        async with asker.streamed(f"{server.url}/held"):
            tasks = []
            for turn in range(6):
                tasks.append(asyncio.create_task(asker.ask(f"{server.url}/echo?{turn}")))
                await until(lambda count=turn + 1: asker.hosts.stats(0.0)[server.name].waiting == count)
            for turn in (0, 3, 5):
                tasks[turn].cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
    assert server.paths()[1:] == ["/echo?1", "/echo?2", "/echo?4"]


@in_real_time
async def test_a_table_of_hosts_may_be_shared(kind: Kind, server: Site) -> None:
    async with opened(kind) as first:
        await first.ask(f"{server.url}/block" if kind.name != "wrapped" else f"{server.url}/hello")
        other = KINDS[0] if kind.name != "httpx" else KINDS[4]
        second = other.open(hosts=first.hosts)
        try:
            if kind.name == "wrapped":
                assert await second.ask(f"{server.url}/hello") == (200, b"hello")
            else:
                with pytest.raises(HostStopped):
                    await second.ask(f"{server.url}/hello")
        finally:
            await second.close()


@in_real_time
async def test_a_proxy_of_the_environment_is_asked_and_no_proxy_is_obeyed(kind: Kind, server: Site) -> None:
    if kind.name == "wrapped":
        pytest.skip("the client's own concern")
    with pytest.MonkeyPatch.context() as environment, site() as proxy:
        environment.setenv("http_proxy", proxy.url)
        environment.setenv("no_proxy", "127.0.0.1")
        async with opened(kind) as asker:
            assert await asker.ask("http://www.example.org/hello") == (200, b"hello")
            assert await asker.ask(f"{server.url}/hello") == (200, b"hello")
            assert set(asker.hosts.stats(0.0)) == {"example.org", server.name}
    assert proxy.paths() == ["http://www.example.org/hello"]
    assert server.paths() == ["/hello"]
