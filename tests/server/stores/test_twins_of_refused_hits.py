"""Hits that were refused without asking the store, and told: each shared store holds what the memory store holds.

Changes made by hand to `report.lua`, each of which made a test fall: times are not moved to
the server's clock · hits are not sorted · they are another caller's · or go to another.
"""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from tests.conftest import STORES
from tests.door import START, StoreKind, settled
from tests.fleet import on_a_server, workers
from tests.histories import over
from tests.servers import Server
from throttle.server.rule import MICROSECONDS, Key, Refused, Rule
from throttle.server.stores import RefusedHits
from throttle.server.stores.hit_log import STAMP
from throttle.server.stores.memory import MemoryStore

STACK = Rule("hit_stack", at_most=4, seconds=2, key=Key.CALLER, holds_refused=True)
WINDOW = 2 * MICROSECONDS
AGES = (0, 1, 1000, 100_000, 500_000, 10**6, WINDOW - 1, WINDOW, WINDOW + 1)
steps = st.tuples(
    st.sampled_from((*AGES, 333_333)),  # the wait
    st.integers(0, 2),
    st.none() | st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from(AGES), max_size=6)), max_size=3),
)


@pytest.fixture(params=[kind for kind in STORES if kind.name != "memory"], ids=lambda kind: kind.name)
def stores(request: pytest.FixtureRequest) -> StoreKind:
    """Each store that is held to the memory store."""
    kind: StoreKind = request.param
    return kind


@over(st.lists(steps, max_size=50), examples=600)
def test_a_shared_store_holds_them_as_the_memory_store_does(
    stores: StoreKind, trace: list[tuple[int, int, list[tuple[int, list[int]]] | None]]
) -> None:
    async def played() -> None:
        now = START
        async with stores.opened() as store:
            twin = MemoryStore(max_callers=192)
            prepared = [one.prepare([STACK]) for one in (store, twin)]
            for wait, caller, told in trace:
                now += wait
                if told is not None:
                    refused = []
                    for key, ages in told:
                        stamps = sorted(now - age + WINDOW for age in ages)
                        refused.append(RefusedHits(STACK, -key, b"".join(at.to_bytes(STAMP, "big") for at in stamps)))
                    by_key = {one.key: one for one in refused}
                    store.hold_refused(list(by_key.values()), now)
                    twin.hold_refused(list(by_key.values()), now)
                said, expected = [
                    await settled(one.admit(of, (0, -caller, 0), now, 0))
                    for one, of in zip((store, twin), prepared, strict=True)
                ]
                assert (type(said), said.quotas) == (type(expected), expected.quotas)
                if type(said) is not Refused:
                    store.release()
                    twin.release()

    stores.run(played())


@on_a_server
async def test_a_worker_tells_by_a_clock_of_its_own(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        day = 86_400 * MICROSECONDS
        leaves = b"".join((day - MICROSECONDS + 15 * MICROSECONDS + i).to_bytes(STAMP, "big") for i in range(12))
        one.hold_refused([RefusedHits(replace(STACK, at_most=10, seconds=15), 1, leaves)], day)
        await asyncio.sleep(0.05)
        verdict = await other.person(1)
        assert isinstance(verdict, Refused)
        assert 13.5 * MICROSECONDS < verdict.retry_after <= 14.001 * MICROSECONDS


@on_a_server
async def test_many_callers_are_told_of_in_one_call(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        now = 10**9
        stack = replace(STACK, at_most=10, seconds=15)
        stamps = [(now + 15 * MICROSECONDS).to_bytes(STAMP, "big")] * 10
        one.hold_refused([RefusedHits(stack, caller, b"".join(stamps[caller:])) for caller in range(10)], now)
        await asyncio.sleep(0.05)
        left = []
        for caller in range(10):
            verdict = await other.person(caller)
            left.append(verdict.quotas[0][1])
        assert left == [0, *range(9)]
