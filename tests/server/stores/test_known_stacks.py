"""Refusals by the hit stack that are given without asking a store that is elsewhere, which is told behind the answer.

Changes made by hand, each of which made a test fall: a stack that is not full refuses ·
the oldest is held for a microsecond more · hits are told twice · the first is not · others are told · nothing is told
before the store is asked · the wait is that of the youngest · what other rules said will do · room is not asked for ·
the store is never asked again · served hits are not kept.
"""

import asyncio
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests import virtual_clock
from tests.virtual_clock import in_virtual_time
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import MICROSECONDS, Hashes, Key, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores.hit_log import unexpired
from throttle.server.stores.known_stacks import A_CALL, BEHIND, KNOWN, LATE, LONGEST, KnownStacks
from throttle.server.stores.memory import MemoryStore

STACK = Rule("hit_stack", at_most=3, seconds=2, key=Key.CALLER, holds_refused=True)
NETWORK = Rule("network", at_most=5, seconds=2, key=Key.NETWORK)


class Elsewhere(MemoryStore):
    """A store whose verdicts are awaited, and which counts how often it is asked and told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.told = 0

    def admit(self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None) -> Any:
        self.asked += 1
        return self._admitted(prepared, hashes, now, rank, sleeper)

    async def _admitted(self, *asked: Any) -> Verdict:
        return super().admit(*asked)

    def hold_refused(self, hits: Any, now: int) -> None:
        self.told += 1
        super().hold_refused(hits, now)


def microseconds() -> int:
    return round(virtual_clock.now() * MICROSECONDS)


class Worker:
    """One process of a site."""

    def __init__(self, store: MemoryStore, *rules: Rule | LoadRule) -> None:
        self.front = KnownStacks(store, virtual_clock.now)
        self.prepared = self.front.prepare(rules or (STACK,))

    async def ask(self, caller: int = 1, network: int = 1) -> Verdict:
        answer = self.front.admit(self.prepared, (0, caller, caller, network), microseconds(), 0)
        verdict = answer if isinstance(answer, Served | Refused) else await answer
        if isinstance(verdict, Served):
            self.front.release()
        return verdict


def asked_directly(store: MemoryStore, prepared: Any, caller: int = 1) -> Verdict:
    verdict = store.admit(prepared, (0, caller, caller, 1), microseconds(), 0)
    if isinstance(verdict, Served):
        store.release()
    return verdict


async def hammer(worker: Worker, times: int, every: float = 0.01) -> list[Verdict]:
    verdicts = []
    for _ in range(times):
        verdicts.append(await worker.ask())
        await asyncio.sleep(every)
    return verdicts


@in_virtual_time
async def test_who_hammers_is_asked_about_once_a_second_and_told_of_ten_times() -> None:
    store = Elsewhere()
    worker = Worker(store)
    await hammer(worker, 100)
    store.asked = store.told = 0
    verdicts = await hammer(worker, 1000)
    assert {type(verdict) for verdict in verdicts} == {Refused}
    assert store.asked <= 11
    assert store.told <= 110


@in_virtual_time
async def test_the_stores_stack_becomes_what_it_would_have_been() -> None:
    told, exact = Elsewhere(), MemoryStore()
    worker, prepared = Worker(told), exact.prepare((STACK,))
    for every in (0.01, 0.3, 0.07, 0.5):
        for _ in range(20):
            await worker.ask()
            asked_directly(exact, prepared)
            await asyncio.sleep(every)
    await asyncio.sleep(BEHIND)
    assert held(told) == held(exact)


def held(store: MemoryStore, caller: int = 1) -> bytes:
    shards = store._hits["hit_stack"].shards
    return shards[caller % len(shards)].find(caller)


# Waits from the rule's own windows: evenly drawn ones seldom meet the edge.
# Each step asks some times at once, a tenth of the window apart or together.
WAITS = (0, 1, 1000, LATE, 100_000, 666_666, 999_999, 10**6, 1_500_000, 2 * 10**6 - 1, 2 * 10**6, 2 * 10**6 + 1)


bursts = st.lists(
    st.tuples(st.sampled_from(WAITS), st.integers(0, 2), st.integers(1, 7), st.sampled_from((0, 1, 200_000))),
    max_size=25,
)


@given(bursts)
@example([(0, 0, 7, 0), (LONGEST, 0, 1, 0), (LONGEST - 1, 0, 1, 0), (1, 0, 1, 0)])
@example([(0, 0, 6, 200_000), (2 * 10**6, 0, 1, 0), (0, 0, 7, 1), (800_000, 0, 3, 200_000), (1_500_000, 0, 1, 0)])
def test_in_one_process_each_verdict_is_what_the_store_would_have_said(trace: list[tuple[int, int, int, int]]) -> None:
    async def played() -> None:
        store, exact = Elsewhere(), MemoryStore()
        worker, prepared = Worker(store), exact.prepare((STACK,))
        for wait, caller, times, apart in trace:
            await asyncio.sleep(wait / MICROSECONDS)
            for _ in range(times):
                said, expected = await worker.ask(caller), asked_directly(exact, prepared, caller)
                assert type(said) is type(expected)
                if isinstance(said, Refused) and isinstance(expected, Refused):
                    assert said.rule == expected.rule
                    assert expected.retry_after <= said.retry_after <= expected.retry_after + LATE
                await asyncio.sleep(apart / MICROSECONDS)
        worker.front.close()
        now = microseconds()
        for caller in range(3):
            assert held_still(store, caller, now) == held_still(exact, caller, now)

    virtual_clock.run(played())


def held_still(store: MemoryStore, caller: int, now: int) -> bytes:
    return unexpired(held(store, caller), (now + 1).to_bytes(8, "big"))


@given(bursts)
@example([(0, 0, 8, 0), (666_666, 1, 1, 0), (0, 0, 1, 0), (666_666, 0, 1, 0), (666_666, 2, 1, 0), (1_500_000, 1, 1, 0)])
def test_of_several_none_refuses_whom_the_store_would_serve_and_what_is_late_is_a_tenth_of_a_second(
    trace: list[tuple[int, int, int, int]],
) -> None:
    async def played() -> None:
        store, exact = Elsewhere(), MemoryStore()
        workers = [Worker(store) for _ in range(3)]
        prepared = exact.prepare((STACK,))
        history: list[tuple[int, int]] = []
        for wait, number, times, apart in trace:
            await asyncio.sleep(wait / MICROSECONDS)
            for _ in range(times):
                now = microseconds()
                said, expected = await workers[number].ask(), asked_directly(exact, prepared)
                if isinstance(said, Refused):
                    assert isinstance(expected, Refused)
                elif isinstance(expected, Refused):
                    in_time = [
                        at
                        for at, who in history
                        if now - 2 * 10**6 < at and (who == number or at <= now - BEHIND * 10**6)
                    ]
                    assert len(in_time) < 3, "those heard of would have let nobody in"
                history.append((now, number))
                await asyncio.sleep(apart / MICROSECONDS)

    virtual_clock.run(played())


@in_virtual_time
async def test_before_a_caller_is_asked_about_the_store_hears_of_his_hits() -> None:
    store, exact = Elsewhere(), MemoryStore()
    worker, prepared = Worker(store), exact.prepare((STACK,))
    for _ in range(7):
        await worker.ask()
        asked_directly(exact, prepared)
        await asyncio.sleep(0.01)
    assert len(worker.front._untold) == 1
    assert held(store) != held(exact)
    worker.prepared = worker.front.prepare((STACK, NETWORK))  # asked for other rules: nothing is known
    await worker.ask()
    asked_directly(exact, prepared)
    assert held(store) == held(exact)


@in_virtual_time
async def test_what_is_told_of_other_rules_is_a_second_old_at_most() -> None:
    store = Elsewhere()
    worker = Worker(store, STACK, NETWORK)
    await hammer(worker, 50)
    verdict = await worker.ask()
    assert isinstance(verdict, Refused)
    (_, left, _), (network, network_left, _) = verdict.quotas
    assert (left, network.name, network_left) == (0, "network", 2)
    for caller in (2, 3):
        await worker.ask(caller)
    verdicts = await hammer(worker, 101)
    assert isinstance(verdicts[-1], Refused)
    assert verdicts[-1].quotas[1][1] <= 1


@in_virtual_time
async def test_without_room_the_store_is_asked_since_room_comes_first() -> None:
    store = Elsewhere()
    worker = Worker(store, LoadRule("load_defer", at_most=2, sleeping_max=0), STACK)
    await hammer(worker, 20)
    for _ in range(2):
        store._running += 1
    verdict = await worker.ask()
    assert isinstance(verdict, Refused)
    assert verdict.rule == "load_defer"


@in_virtual_time
async def test_a_last_hit_before_the_stack_or_a_deep_one_leaves_all_to_the_store() -> None:
    for rules in (
        list(handle_request(CallerClass.KNOWN_CRAWLER, Limits())),
        [Rule("hit_stack", at_most=1000, seconds=2, key=Key.CALLER, holds_refused=True)],
        [NETWORK, STACK],
    ):
        store = Elsewhere()
        assert type(KnownStacks(store, virtual_clock.now).prepare(rules)) is not type(Worker(store).prepared)


@in_virtual_time
async def test_hits_that_were_wiped_out_in_the_store_count_here_for_a_second_at_most() -> None:
    store = Elsewhere()
    worker = Worker(store)
    await hammer(worker, 20)
    await asyncio.sleep(0.5)
    await worker.ask()
    await asyncio.sleep(BEHIND)
    for shard in store._hits["hit_stack"].shards:
        shard.young.clear()
        shard.old.clear()
    assert isinstance(await worker.ask(), Refused)
    await asyncio.sleep(1)
    assert isinstance(await worker.ask(), Served)


@in_virtual_time
async def test_what_is_known_is_bounded_and_who_is_forgotten_is_told_of() -> None:
    store = Elsewhere()
    worker = Worker(store)
    for _ in range(7):
        await worker.ask(0)
    for caller in range(1, KNOWN + 100):
        for _ in range(4):
            await worker.ask(caller)
    assert len(worker.prepared.stacks) <= KNOWN
    assert not worker.front._untold
    assert len(held(store, 0)) == 8 * 3


@in_virtual_time
async def test_many_callers_are_told_of_in_calls_of_bounded_length() -> None:
    store = Elsewhere()
    worker = Worker(store)
    for _ in range(7):
        for caller in range(3 * A_CALL):
            await worker.ask(caller)
            assert len(worker.front._untold) < A_CALL
    assert store.told >= 3


@in_virtual_time
async def test_the_end_tells_what_was_not_told() -> None:
    store = Elsewhere()
    worker = Worker(store)
    await hammer(worker, 7, every=0.0)
    assert store.told == 0
    worker.front.close()
    assert store.told == 1
