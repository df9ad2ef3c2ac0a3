"""The tests' own event loop."""

import asyncio
import socket
import time

import pytest

from tests.virtual_clock import now, run


def test_an_hour_passes_in_no_time() -> None:
    began = time.perf_counter()
    run(asyncio.sleep(3600))
    assert time.perf_counter() - began < 1


def test_time_passes_in_waits_only_and_to_the_microsecond() -> None:
    async def scenario() -> list[float]:
        seen = [now()]
        sum(range(100_000))
        await asyncio.sleep(0)
        seen.append(now())
        await asyncio.sleep(29.999_999)
        seen.append(now())
        await asyncio.sleep(0.000_001)
        return [*seen, now()]

    assert [round(seen, 9) for seen in run(scenario())] == [1000, 1000, 1029.999_999, 1030]


def test_timers_ring_in_order_each_at_its_own_instant() -> None:
    async def scenario() -> list[tuple[float, float]]:
        rung: list[tuple[float, float]] = []

        async def ring(after: float) -> None:
            await asyncio.sleep(after)
            rung.append((after, round(now() - 1000, 9)))

        await asyncio.gather(*map(ring, (15, 2, 30, 0.1, 2.000001)))
        return rung

    assert run(scenario()) == [(0.1, 0.1), (2, 2), (2.000001, 2.000001), (15, 15), (30, 30)]


def test_a_wait_of_days_is_whole() -> None:
    async def scenario() -> float:
        await asyncio.sleep(10 * 86_400)
        return now() - 1000

    assert run(scenario()) == pytest.approx(10 * 86_400)


def test_a_timeout_ends_a_wait_at_its_instant() -> None:
    async def scenario() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        return now() - 1000

    assert run(scenario()) == 5


def test_what_is_ready_comes_before_the_next_timer() -> None:
    async def scenario() -> tuple[bytes, float]:
        near, far = socket.socketpair()
        with near, far:
            near.setblocking(False)
            read = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(near, 5))
            sleep = asyncio.ensure_future(asyncio.sleep(60))
            await asyncio.sleep(0)
            far.send(b"first")
            await asyncio.wait((read, sleep), return_when=asyncio.FIRST_COMPLETED)
            sleep.cancel()
            return read.result(), now() - 1000

    assert run(scenario()) == (b"first", 0)


def test_a_wait_that_nothing_can_end_is_an_error_and_does_not_hang() -> None:
    with pytest.raises(RuntimeError, match="every task waits"):
        run(asyncio.Event().wait())


def test_run_hands_on_what_the_coroutine_returns_or_raises() -> None:
    async def returns() -> str:
        return "done"

    async def raises() -> None:
        raise LookupError("lost")

    assert run(returns()) == "done"
    with pytest.raises(LookupError, match="lost"):
        run(raises())


def test_each_run_has_a_clock_of_its_own() -> None:
    async def scenario() -> float:
        began = now()
        await asyncio.sleep(7)
        return began

    assert [run(scenario()), run(scenario())] == [1000, 1000]
