"""The third document's sliding window: its own code, and ours, on a real server."""

import asyncio
import secrets
import threading
import time
from collections.abc import Callable

import pytest
import redis
import redis.asyncio
from hypothesis import given
from hypothesis import strategies as st

from tests import servers
from throttle.client.sliding_window import AsyncSlidingWindow, SlidingWindow


@pytest.fixture(params=servers.binaries())
def server(request: pytest.FixtureRequest) -> redis.Redis:
    return servers.shared(request.param).client()


def can_fire(server: redis.Redis, domain: str, rate_per_sec: int, seconds: Callable[[], float] = time.time) -> bool:
    """The third document's code, its names and its order; only the clock is an argument."""
    key = f"throttle:{domain}"
    now_ms = int(seconds() * 1000)
    window_start = now_ms - 1000
    pipe = server.pipeline()
    pipe.zremrangebyscore(key, 0, window_start)
    pipe.zcard(key)
    pipe.zadd(key, {str(now_ms): now_ms})
    pipe.expire(key, 5)
    _, current_count, _, _ = pipe.execute()
    if current_count >= rate_per_sec:
        server.zrem(key, str(now_ms))
        return False
    return True


def test_the_documents_code_lets_more_through_than_it_says(server: redis.Redis) -> None:
    domain = secrets.token_hex(8)
    # Hits of one millisecond are one member.
    assert sum(can_fire(server, domain, 10, lambda: 1000.0) for _ in range(50)) == 50
    # And who is refused takes a hit of others back: ten were granted, and after one refusal one more is.
    domain = secrets.token_hex(8)
    assert all(can_fire(server, domain, 10, lambda at=at: 1000.0 + at / 100) for at in range(10))  # type: ignore[misc]
    assert not can_fire(server, domain, 10, lambda: 1000.09)
    assert can_fire(server, domain, 10, lambda: 1000.095)


def test_ours_lets_exactly_so_many_through_on_the_same_questions(server: redis.Redis) -> None:
    window = SlidingWindow(server, 10, 1.0)
    domain = secrets.token_hex(8)
    assert sum(window.ask(domain, 1000.0) == 0.0 for _ in range(50)) == 10
    domain = secrets.token_hex(8)
    assert all(window.ask(domain, 1000.0 + at / 100) == 0.0 for at in range(10))
    assert window.ask(domain, 1000.09) == pytest.approx(0.91)
    assert window.ask(domain, 1000.095) == pytest.approx(0.905)


def test_a_hit_exactly_a_window_old_has_left(server: redis.Redis) -> None:
    window = SlidingWindow(server, 2, 1.0)
    domain = secrets.token_hex(8)
    assert window.ask(domain, 5.0) == 0.0
    assert window.ask(domain, 5.4) == 0.0
    assert window.ask(domain, 5.999999) == pytest.approx(1e-6)
    assert window.ask(domain, 6.0) == 0.0
    assert window.ask(domain, 6.0) == pytest.approx(0.4)


def test_who_returns_when_told_is_served(server: redis.Redis) -> None:
    window = SlidingWindow(server, 3, 0.7)
    domain = secrets.token_hex(8)
    now = 100.0
    for _ in range(40):
        wait = window.ask(domain, now)
        if wait:
            now += wait
            assert window.ask(domain, now) == 0.0


def test_a_clock_that_goes_back_grants_nothing_twice(server: redis.Redis) -> None:
    window = SlidingWindow(server, 2, 1.0)
    domain = secrets.token_hex(8)
    assert window.ask(domain, 10.0) == window.ask(domain, 10.0) == 0.0
    assert window.ask(domain, 3.0) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=60), st.integers(1, 5))
def test_no_window_holds_more_and_no_place_is_left_empty(gaps: list[int], at_most: int) -> None:
    window = SlidingWindow(servers.shared("valkey").client(), at_most, 1.0)
    domain = secrets.token_hex(8)
    now, granted = 10**12, []
    for gap in gaps:
        now += gap
        is_free = sum(1 for time in granted if time > now - 1_000_000) < at_most
        assert (window.ask(domain, now / 10**6) == 0.0) == is_free
        if is_free:
            granted.append(now)


def test_fifty_of_a_crowd_of_threads_are_granted_by_the_servers_clock(server: redis.Redis) -> None:
    window = SlidingWindow(server, 50, 60.0)
    domain = secrets.token_hex(8)
    granted: list[bool] = []

    def ask() -> None:
        granted.extend(window.ask(domain) == 0.0 for _ in range(40))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 50


def test_the_asynchronous_one_asks_the_same(server: redis.Redis) -> None:
    async def crowd() -> int:
        socket = server.connection_pool.connection_kwargs["path"]
        async with redis.asyncio.Redis(unix_socket_path=socket) as client:
            window = AsyncSlidingWindow(client, 50, 60.0)
            domain = secrets.token_hex(8)
            return sum(wait == 0.0 for wait in await asyncio.gather(*(window.ask(domain) for _ in range(80))))

    assert asyncio.run(crowd()) == 50


@pytest.mark.parametrize(("at_most", "seconds"), [(0, 1.0), (True, 1.0), (10, 0.0), (10, float("nan"))])
def test_what_makes_no_sense_is_told(server: redis.Redis, at_most: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="needed"):
        SlidingWindow(server, at_most, seconds)
