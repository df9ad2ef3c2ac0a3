"""Refusals that are given without asking a store that is elsewhere."""

import asyncio
from typing import Any

from tests import virtual_clock
from tests.virtual_clock import in_virtual_time
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import MICROSECONDS, Hashes, Refused, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores.known_refusals import KNOWN, KnownRefusals
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.own_load import OwnLoad


class Elsewhere(MemoryStore):
    """A store whose verdicts take a millisecond, and which counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def admit(self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None) -> Any:
        self.asked += 1
        return self._admitted(prepared, hashes, now, rank, sleeper)

    async def _admitted(self, *asked: Any) -> Verdict:
        await asyncio.sleep(0.001)
        return super().admit(*asked)


class Door:
    """One worker of a site."""

    def __init__(self, limits: Limits, store: Elsewhere | None = None) -> None:
        self.store = store or Elsewhere()
        self.known = KnownRefusals(self.store, virtual_clock.now)
        self.prepared = {
            kind: self.known.prepare(list(handle_request(kind, limits)))
            for kind in (CallerClass.KNOWN_CRAWLER, CallerClass.BROWSER)
        }

    async def ask(self, caller: int, kind: CallerClass = CallerClass.KNOWN_CRAWLER) -> Verdict:
        now = round(virtual_clock.now() * MICROSECONDS)
        answer = self.known.admit(self.prepared[kind], (0, caller, caller), now, 0)
        verdict = answer if isinstance(answer, Served | Refused) else await answer
        if isinstance(verdict, Served):
            self.known.release()
        return verdict

    async def hammer(self, caller: int, seconds: float, every: float = 0.1) -> list[Verdict]:
        verdicts = []
        for _ in range(round(seconds / every)):
            verdicts.append(await self.ask(caller))
            await asyncio.sleep(every)
        return verdicts


LONE = Limits(all_crawlers_seconds=None, lone_crawler_seconds=30)


@in_virtual_time
async def test_who_hammers_within_its_last_hit_is_asked_about_a_few_times_only() -> None:
    door = Door(LONE)
    assert isinstance(await door.ask(1), Served)
    verdicts = await door.hammer(1, 29)
    assert {type(verdict) for verdict in verdicts} == {Refused}
    assert len(verdicts) == 290
    assert door.store.asked <= 6, "once in ten seconds, and when a hit leaves some rule"


@in_virtual_time
async def test_the_wait_told_is_never_shorter_than_what_is_left_and_then_it_is_served() -> None:
    door = Door(LONE)
    await door.ask(1)
    served_at = round((virtual_clock.now() - 0.001) * MICROSECONDS)
    for verdict in await door.hammer(1, 29, every=0.37):
        assert isinstance(verdict, Refused)
        assert verdict.rule == "lone_crawler"
        assert 0 < verdict.retry_after <= 30 * MICROSECONDS
    refused = await door.ask(1)
    assert isinstance(refused, Refused)
    now = round(virtual_clock.now() * MICROSECONDS)
    left = served_at + 30 * MICROSECONDS - now
    assert left <= refused.retry_after <= left + 2000
    await asyncio.sleep(refused.retry_after / MICROSECONDS)
    assert isinstance(await door.ask(1), Served)


@in_virtual_time
async def test_a_clock_that_is_shared_is_known_for_each_caller_apart() -> None:
    door = Door(Limits(lone_crawler_seconds=30, all_crawlers_seconds=2))
    await door.ask(1)
    asked = door.store.asked
    refused = await door.ask(2)
    assert isinstance(refused, Refused)
    assert refused.rule == "all_crawlers"
    await door.ask(2)
    assert door.store.asked == asked + 1
    # Of caller 1 another rule refuses first, and for longer.
    refused = await door.ask(1)
    assert isinstance(refused, Refused)
    assert (refused.rule, refused.retry_after > 29 * MICROSECONDS) == ("lone_crawler", True)


@in_virtual_time
async def test_a_refused_hit_on_the_stack_always_reaches_the_store_since_it_counts() -> None:
    door = Door(Limits(lone_crawler_seconds=None, all_crawlers_seconds=None, stack_hits=1))
    for _ in range(20):
        await door.ask(1, CallerClass.BROWSER)
        await door.ask(1)
    assert door.store.asked == 40


@in_virtual_time
async def test_rules_of_other_limits_know_nothing_of_it() -> None:
    door = Door(LONE)
    await door.ask(1)
    await door.ask(1)
    changed = door.known.prepare(
        list(handle_request(CallerClass.KNOWN_CRAWLER, Limits(lone_crawler_seconds=None, all_crawlers_seconds=None)))
    )
    answer = door.known.admit(changed, (0, 1, 1), round(virtual_clock.now() * MICROSECONDS), 0)
    assert isinstance(await answer, Served)  # type: ignore[misc]


@in_virtual_time
async def test_what_is_known_is_bounded() -> None:
    door = Door(LONE)
    for caller in range(KNOWN + 100):
        await door.ask(caller)
        await door.ask(caller)
    assert len(door.known._known) <= KNOWN


@in_virtual_time
async def test_a_store_in_this_process_is_asked_each_time() -> None:
    known = KnownRefusals(MemoryStore(), virtual_clock.now)
    prepared = known.prepare(list(handle_request(CallerClass.KNOWN_CRAWLER, LONE)))
    assert isinstance(known.admit(prepared, (0, 1, 1), 1, 0), Served)
    assert isinstance(known.admit(prepared, (0, 1, 1), 2, 0), Refused)
    assert not known._known


class Said:
    load_max = 1
    was_full = False

    def arrived(self, now: int) -> bool:
        return False

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> bool:
        return False


@in_virtual_time
async def test_behind_an_own_load_a_shared_store_counts_hits_and_each_process_its_load() -> None:
    store = Elsewhere()
    rules = list(handle_request(CallerClass.ASSUMED_BOT, Limits(load_max="auto", stack_hits=2)))
    workers = [OwnLoad(KnownRefusals(store, virtual_clock.now), Said()) for _ in range(2)]

    async def ask(worker: int, caller: int, sleeper: Any = None) -> Any:
        own = workers[worker]
        now = round(virtual_clock.now() * MICROSECONDS)
        return await own.admit(own.prepare(rules), (0, caller, caller), now, 0, sleeper)  # type: ignore[misc]

    # Two that ask at once find one place: it is reserved while the store is asked.
    first, second = await asyncio.gather(ask(0, 1), ask(0, 2))
    assert isinstance(first, Served)
    assert second.sleeper.part is not None
    workers[0].release()
    assert second.sleeper.woken.done()
    assert isinstance(await ask(0, 2, second.sleeper), Served)
    workers[0].release()
    # Hits are the fleet's: one by each worker, and the third is refused.
    assert isinstance(await ask(1, 1), Served)
    workers[1].release()
    refused = await ask(0, 1)
    assert (type(refused), refused.rule) == (Refused, "hit_stack")
    assert (store.load, workers[0].sleeping) == (0, 0)
