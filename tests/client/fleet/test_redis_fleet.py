"""The threads that link paces to a real server: both kinds of clients, a server that is lost, real processes."""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest

from benchmarks.fleet.run import outcome
from benchmarks.fleet.site import Site
from tests import servers
from throttle.client import AsyncThrottledTransport, ThrottledTransport
from throttle.client.fleet.call import news_from, reply_from
from throttle.client.fleet.redis_fleet import RedisFleet
from throttle.client.pace.aimd import AimdPace
from throttle.client.settings import Rates

PATIENCE = 10.0
"""seconds for what takes milliseconds, on a busy machine"""


def steady(rates: Rates) -> AimdPace:
    return AimdPace(rate=200.0, rate_min=200.0, rate_max=200.0)


def page(status: int = 200, headers: dict[str, str] | None = None) -> httpx.Response:
    """Its body is still to be read, as from a network."""
    return httpx.Response(status, headers=headers, content=iter([b"page"]))


class Site429:
    """Serves, until it is told to refuse once."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.refuses = threading.Event()

    def __call__(self, _: httpx.Request) -> httpx.Response:
        self.seen.append(time.monotonic())
        if self.refuses.is_set():
            self.refuses.clear()
            return page(429, {"retry-after": "1"})
        return page()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


@pytest.fixture
def fleets() -> Iterator[Callable[[], RedisFleet]]:
    """Two or more workers of one fleet, in this process."""
    prefix, made = secrets.token_hex(8), list[RedisFleet]()

    def make() -> RedisFleet:
        made.append(RedisFleet(servers.shared("valkey").url, prefix=prefix, time_box=5.0))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


def test_blocking_clients_share_a_pause(fleets: Callable[[], RedisFleet]) -> None:
    site = Site429()
    made = [
        ThrottledTransport(shared=fleets(), pace=steady, transport=lambda: httpx.MockTransport(site)) for _ in range(2)
    ]
    with httpx.Client(transport=made[0]) as first, httpx.Client(transport=made[1]) as second:
        for client in (first, second):
            assert client.get("http://example.org/").status_code == 200
        site.refuses.set()
        assert first.post("http://example.org/").status_code == 429
        refused = site.seen[-1]
        other = made[1].hosts.host("example.org", 0.0)
        eventually(lambda: other.breaker.is_resting)
        assert second.get("http://example.org/").status_code == 200
        assert site.seen[-1] - refused >= 1.0


def test_asynchronous_clients_share_one_rate(fleets: Callable[[], RedisFleet]) -> None:
    seen: list[float] = []

    async def body() -> AsyncIterator[bytes]:
        yield b"page"

    def site(_: httpx.Request) -> httpx.Response:
        seen.append(time.monotonic())
        return httpx.Response(200, content=body())

    async def crowd() -> list[int]:
        transports = [
            AsyncThrottledTransport(shared=fleets(), pace=steady, transport=lambda: httpx.MockTransport(site))
            for _ in range(3)
        ]
        clients = [httpx.AsyncClient(transport=transport) for transport in transports]
        answers = await asyncio.gather(*(client.get("http://example.org/") for client in clients * 20))
        for client in clients:
            await client.aclose()
        return [answer.status_code for answer in answers]

    assert asyncio.run(crowd()) == [200] * 60
    # 60 at 200 a second: had each its own pace, the last would have left after a tenth of a second.
    assert seen[-1] - seen[0] >= 59 / 200 * 0.9


def test_a_server_that_is_killed_fails_no_request_and_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    server = servers.Server(servers.binaries()["valkey"])
    site = Site429()
    with caplog.at_level(logging.WARNING, "throttle.client"):
        transport = ThrottledTransport(shared=server.url, pace=steady, transport=lambda: httpx.MockTransport(site))
        with httpx.Client(transport=transport) as client:
            assert client.get("http://example.org/").status_code == 200
            server.kill()
            assert [client.get("http://example.org/").status_code for _ in range(40)] == [200] * 40
            assert [record.message for record in caplog.records if "lost" in record.message] != []
            server.start()
            eventually(lambda: any("is back" in record.message for record in caplog.records))
            assert client.get("http://example.org/").status_code == 200
    server.close()
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 2


def test_who_begins_without_a_server_is_served_all_the_same() -> None:
    transport = ThrottledTransport(
        shared=f"unix:///nowhere/{secrets.token_hex(4)}",
        pace=steady,
        transport=lambda: httpx.MockTransport(lambda _: page()),
    )
    with httpx.Client(transport=transport) as client:
        assert client.get("http://example.org/").status_code == 200


def test_a_url_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="scheme"):
        ThrottledTransport(shared="127.0.0.1:6379")


def test_what_is_no_answer_of_a_ledger_is_not_taken_for_one() -> None:
    for raw in ([], [b"1"] * 17, [b"x"] * 18, [b"1"] * 18 + [b"no report"]):
        with pytest.raises(ValueError):  # noqa: PT011  # whatever it says, it is one kind of error
            reply_from(raw)
    for text in ("", "1 2", "a b c d", "rest 1 2", "rate x 1 a"):
        with pytest.raises(ValueError):  # noqa: PT011
            news_from(text)


def test_real_processes_spend_one_budget_and_go_on_when_one_is_killed() -> None:
    """Three processes, a hidden limit of 60 a second and its burst; nine seconds once all are there.

    Whoever is killed may have been the scout, whom another replaces after five seconds.
    """
    port = servers.free_port()
    server = servers.Server(servers.binaries()["valkey"], port=port)

    async def run() -> None:
        async def kill_one(running: list[asyncio.subprocess.Process]) -> None:
            running[1].kill()

        async with Site(60.0, 60.0) as site:
            done = await outcome(site, f"redis://127.0.0.1:{port}", 3, 9.0, disturb=kill_one)
        refused = [hit for hit in done.hits if not hit.served]
        assert len(refused) <= 0.1 * len(done.hits)
        assert {hit.worker for hit in done.between(0.5, 9.0)} == {"0", "2"}

    try:
        asyncio.run(run())
    finally:
        server.close()
