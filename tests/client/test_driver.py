"""The loops that drive the flow: a wake-up is never lost, and the host is locked whenever it is touched."""

import asyncio
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from tests import virtual_clock
from throttle.client import polite_hosts
from throttle.client.answer import Answer, Ending
from throttle.client.driver import AsyncBell, Bell, drive, drive_async
from throttle.client.exchange import Send, exchange
from throttle.client.host import Host, HostStats
from throttle.client.pace.aimd import AimdPace

LONG = 1e6  # seconds


@virtual_clock.in_virtual_time
async def test_a_ring_before_the_wait_is_heard_and_only_once() -> None:
    bell = AsyncBell()
    bell.ring()
    await bell.wait(LONG)
    assert virtual_clock.now() == 1000.0
    await bell.wait(5.0)
    assert virtual_clock.now() == 1005.0


@virtual_clock.in_virtual_time
async def test_a_ring_ends_the_wait() -> None:
    bell = AsyncBell()
    asyncio.get_running_loop().call_later(7.0, bell.ring)
    await bell.wait(None)
    assert virtual_clock.now() == 1007.0


def test_on_trio_likewise() -> None:
    async def scenario() -> float:
        bell = AsyncBell()
        bell.ring()
        await bell.wait(LONG)
        async with trio.open_nursery() as nursery:

            async def ring() -> None:
                await trio.sleep(7.0)
                bell.ring()

            nursery.start_soon(ring)
            started: float = trio.current_time()
            await bell.wait(None)
        await bell.wait(5.0)
        return trio.current_time() - started

    assert trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0)) == 12.0


def rung_from_a_thread(ring: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=ring)
    thread.start()
    return thread


def test_another_thread_ends_the_wait_in_asyncio_and_in_trio() -> None:
    async def in_asyncio() -> None:
        bell = AsyncBell()
        asyncio.get_running_loop().call_soon(rung_from_a_thread, bell.ring)
        await asyncio.wait_for(bell.wait(None), 20)

    async def in_trio() -> None:
        bell = AsyncBell()
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, bell.ring)
                await bell.wait(None)

    asyncio.run(in_asyncio())
    trio.run(in_trio)


def test_who_rings_after_the_loop_is_gone_does_no_harm() -> None:
    bell = AsyncBell()

    async def wait() -> None:
        task = asyncio.create_task(bell.wait(None))
        await asyncio.sleep(0)
        ring = bell._finish
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bell._finish = ring  # it had been read before the wait ended

    asyncio.run(wait())
    rung_from_a_thread(bell.ring).join()


def test_a_blocking_wait_hears_a_ring_before_it_and_from_another_thread() -> None:
    bell = Bell()
    bell.ring()
    started = time.monotonic()
    bell.wait(20)
    thread = rung_from_a_thread(bell.ring)
    bell.wait(20)
    thread.join()
    assert time.monotonic() - started < 10
    bell.wait(0.001)  # nobody rings: it ends by itself


class Lock:
    """Knows whether it is held."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


class PaceUnderLock(AimdPace):
    lock: Lock

    def sent(self, now: float, height: int) -> None:
        assert self.lock.depth == 1

    def served(self, now: float, sent_at: float, height: int) -> None:
        assert self.lock.depth == 1


class OneAnswer:
    """An attempt of either kind."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def send_blocking(self) -> Answer:
        assert self._lock.depth == 0
        return Answer(1.0, 200)

    async def send_async(self) -> Answer:
        return self.send_blocking()

    def discard(self) -> Any:
        raise AssertionError("nothing is sent twice")


@pytest.mark.parametrize("is_async", [True, False])
def test_the_host_is_locked_when_it_is_touched_and_never_while_anything_waits(is_async: bool) -> None:
    pace = PaceUnderLock(rate=10.0)
    host = Host("example.org", pace, 0.0, Random(1))
    host.lock = pace.lock = Lock()  # type: ignore[assignment]  # one that tells
    leave = host.leave

    def leave_under_lock(waiter: Any) -> None:
        assert pace.lock.depth == 1
        leave(waiter)

    host.leave = leave_under_lock  # type: ignore[method-assign]
    attempt: Any = OneAnswer(pace.lock)
    attempt.send = attempt.send_async if is_async else attempt.send_blocking
    if is_async:
        place = asyncio.run(drive_async(host, attempt, 0.0, lambda: 1.0, method="GET", is_replayable=True))
    else:
        place = drive(host, attempt, 0.0, lambda: 1.0, method="GET", is_replayable=True)
    host.release(place)
    assert host.in_flight.count == 0


def test_stats_are_taken_under_the_lock_too() -> None:
    hosts = polite_hosts()
    host = hosts.host("example.org", 0.0)
    host.lock = lock = Lock()  # type: ignore[assignment]
    stats = host.stats

    def stats_under_lock(now: float) -> HostStats:
        assert lock.depth == 1
        return stats(now)

    host.stats = stats_under_lock  # type: ignore[method-assign]
    assert list(hosts.stats(0.0)) == ["example.org"]


def test_a_request_earns_its_share_of_a_retry_once_however_it_is_sent() -> None:
    host = Host("example.org", AimdPace(rate=1.0), 0.0, Random(1))
    budget = host.retry_budget
    before = budget.balance(0.0)
    place = host.place_at_once(0.0)
    assert place is not None
    assert host.place_at_once(0.0) is None  # there is no token: it will go through the flow
    next(exchange(host, lambda: None, 0.0))
    assert budget.balance(0.0) == pytest.approx(before + 2 * budget.share)
    next(exchange(host, lambda: None, 0.0, tried=Ending.DROPPED))  # again, as a retry
    assert budget.balance(0.0) == pytest.approx(before + 2 * budget.share)


def test_nobody_overtakes_who_waits() -> None:
    host = Host("example.org", AimdPace(rate=1.0), 0.0, Random(1))
    assert host.place_at_once(0.0) is not None
    waiting = exchange(host, lambda: None, 0.0)
    next(waiting)
    assert host.place_at_once(50.0) is None
    assert waiting.send(50.0) == Send(0)
