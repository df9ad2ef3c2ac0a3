"""Of the worker threads a few are kept for people."""

import asyncio

import anyio.to_thread

from tests.virtual_clock import in_virtual_time
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import Deferred, Refused, Served
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.own_load import OwnLoad
from throttle.server.worker_threads import WorkerThreads


class Said:
    load_max = 1000
    was_full = False

    def arrived(self, now: int) -> bool:
        return False

    def ended(self, kind: tuple[object, object], began: object, now: int) -> bool:
        return False


def test_a_tenth_of_the_threads_is_not_for_machines() -> None:
    async def scenario() -> None:
        threads, limiter = WorkerThreads(), anyio.to_thread.current_default_thread_limiter()
        assert limiter.total_tokens == 40
        for number in range(36):
            assert threads.has_one_for_a_machine(number)
            limiter.acquire_on_behalf_of_nowait(number)
        assert not threads.has_one_for_a_machine(36)
        limiter.release_on_behalf_of(0)
        assert threads.has_one_for_a_machine(36), "one of those that run is in no thread"

    asyncio.run(scenario())


@in_virtual_time
async def test_without_a_thread_a_machine_sleeps_and_people_are_served() -> None:
    has_thread = False
    gate = OwnLoad(MemoryStore(), Said(), has_thread=lambda load: has_thread)
    bots, people = (
        gate.prepare(list(handle_request(kind, Limits(load_max="auto", stack_hits=None))))
        for kind in (CallerClass.ASSUMED_BOT, CallerClass.BROWSER)
    )
    assert isinstance(gate.admit(people, (0, 1, 1), 1, 0), Served)
    verdict = gate.admit(bots, (0, 2, 2), 1, 0)
    assert isinstance(verdict, Deferred)
    assert verdict.rule == "load_defer"
    gate.release()
    assert not verdict.sleeper.woken.done(), "it would ask, sleep on, be woken, and so on"
    assert isinstance(gate.admit(people, (0, 1, 1), 1, 0), Served)
    has_thread = True
    gate.release()
    assert verdict.sleeper.woken.done()
    assert isinstance(gate.admit(bots, (0, 2, 2), 2, 0, verdict.sleeper), Served)
    gate.release()
    assert not isinstance(gate.admit(bots, (0, 3, 3), 2, 0), Refused)
