"""What is promised to callers, each promise by its number; over drawn histories where it is one for all cases.

1 people first · 2 a Retry-After is not a lie · 3 a refusal does not restart a wait · 11 nothing is hindered for
nothing. Promise 7, memory, is in `server/stores/test_memory.py`; 6, the stores agree, in `test_twins.py`; 13, a crawl
loses nothing, in `crawl/test_kill.py`.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import FEED_READER as FEED_READERS_AGENT
from tests.asgi import ask
from tests.door import (
    CHROME,
    FEED_READER,
    GOOGLEBOT,
    SLURP,
    START,
    Door,
    StoreKind,
    at_the_door,
    crawler,
    feed_reader,
    serve_unasked,
)
from tests.histories import CALLERS, History, histories, over, page_of, played
from tests.pseudocode import SECOND, Caller
from tests.virtual_clock import in_virtual_time, now
from throttle import Limits, MemoryStore, ThrottleMiddleware
from throttle.retry_after import whole_seconds
from throttle.server.rule import Served

# 1. People first: a browser is never refused or delayed because of load, whatever the bots do.


@over(histories(), examples=100)
def test_promise_1_no_browser_is_refused_or_delayed_for_load(stores: StoreKind, history: History) -> None:
    async def scenario() -> None:
        async with stores.opened() as store:
            twins = await played(Door(store, history.limits), history)
        assert {refusal.rule for refusal in twins.refusals if refusal.caller.kind == "browser"} <= {"hit_stack"}

    stores.run(scenario())


# 2. A Retry-After is not a lie.


@over(histories(), examples=200)
def test_promise_2_who_returns_a_microsecond_early_is_refused_and_who_returns_in_time_is_served(
    stores: StoreKind, history: History
) -> None:
    """Each history is played again up to a refusal; then all others leave, and its caller returns."""

    async def scenario() -> None:
        async with stores.opened() as store:
            refusals = (await played(Door(store, history.limits), history)).refusals
        for refusal in refusals[-2:]:
            for early in (1, 0) if refusal.retry_after else (0,):
                async with stores.opened() as store:
                    door = Door(store, history.limits)
                    twins = await played(door, history, asks=refusal.place)
                    await twins.all_leave()
                    returns = refusal.at + refusal.retry_after - early
                    assert await door.is_served(refusal.caller, returns) is (early == 0)

    stores.run(scenario())


@given(left=st.integers(0, 3 * SECOND) | st.integers(0, 10**15))
def test_promise_2_the_wait_is_rounded_up_to_whole_seconds_and_is_at_least_1(left: int) -> None:
    told = whole_seconds(left)
    assert told >= 1
    assert told * SECOND >= left
    assert told == 1 or (told - 1) * SECOND < left


@at_the_door()
async def test_promise_2_unless_another_hit_under_the_same_key_was_recorded_meanwhile(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    for caller in (SLURP, crawler(1)):
        assert (await door.is_refused_by("all_crawlers", caller, START + SECOND)).retry_after == SECOND
    assert await door.is_served(SLURP, START + 2 * SECOND)
    assert (await door.is_refused_by("all_crawlers", crawler(1), START + 2 * SECOND)).retry_after == 2 * SECOND


@in_virtual_time
async def test_promise_2_for_load_it_is_an_estimate_spread_so_that_not_all_return_at_once() -> None:
    drawn = iter([0.0, 0.5, 0.999])
    store = MemoryStore()
    await serve_unasked(store, 19)
    app = ThrottleMiddleware(never, store=store, limits=Limits(sleeping_max=0), clock=now, random=lambda: next(drawn))
    told = [(await ask(app, agent=FEED_READERS_AGENT)).retry_after for _ in range(3)]
    assert told == [20, 25, 30], "the load, and up to half of it more"


async def never(*_: object) -> None:
    raise AssertionError("it was served")


# 3. A refusal does not restart a wait, except on the hit stack, whose Retry-After knows that.

WITHOUT_STACK = st.builds(
    Limits,
    lone_crawler_seconds=st.sampled_from([None, 2, 30]),
    all_crawlers_seconds=st.sampled_from([None, 2, 3]),
    stack_hits=st.none(),
    load_max=st.integers(1, 3),
    sleeping_max=st.just(0),
)


@over(histories(WITHOUT_STACK), examples=200)
def test_promise_3_a_history_without_its_refused_requests_goes_the_same_way(
    stores: StoreKind, history: History
) -> None:
    async def scenario() -> None:
        async with stores.opened() as store:
            first = await played(Door(store, history.limits), history)
        async with stores.opened() as store:
            door = Door(store, history.limits)
            await serve_unasked(store, history.crowd)
            for event in first.events:
                if event.caller is None:
                    store.release()
                elif event.is_served:
                    assert isinstance(await door.ask(event.caller, event.at), Served), event

    stores.run(scenario())


@at_the_door()
async def test_promise_3_a_crawler_that_asks_all_the_time_is_served_every_30_seconds(door: Door) -> None:
    served = [second for second in range(100) if await door.is_served(GOOGLEBOT, START + second * SECOND)]
    assert served == [0, 30, 60, 90]


@at_the_door(Limits(load_max=1, sleeping_max=0))
async def test_promise_3_neither_load_nor_pause_starts_a_wait(door: Door) -> None:
    await door.is_running(1)
    for second in range(20):
        await door.is_refused_by("load_defer", GOOGLEBOT, START + second * SECOND)
        await door.is_refused_by("load_defer", FEED_READER, START + second * SECOND)
    door.store.release()
    assert await door.is_served(GOOGLEBOT, START + 19 * SECOND)
    assert await door.is_served(FEED_READER, START + 19 * SECOND)


@at_the_door()
async def test_promise_3_who_hammers_the_stack_stays_out_and_is_told_so(door: Door) -> None:
    for second in range(10):
        assert await door.is_served(CHROME, START + second * SECOND)
    for second in range(10, 100):
        refusal = await door.is_refused_by("hit_stack", CHROME, START + second * SECOND)
        assert refusal.retry_after == 6 * SECOND, "until all but nine hits of the last ten seconds have left"
    assert await door.is_served(CHROME, START + 105 * SECOND)


# 11. Nothing is hindered for nothing: with room to spare, the only refusals are rate rules' refusals.

WITH_ROOM = st.builds(
    Limits,
    stack_hits=st.sampled_from([None, 1, 3]),
    load_max=st.just(1_000),
    sleeping_max=st.integers(0, 3),
)


@over(histories(WITH_ROOM), examples=100)
def test_promise_11_with_room_to_spare_nobody_sleeps_and_only_rate_rules_refuse(
    stores: StoreKind, history: History
) -> None:
    async def scenario() -> None:
        async with stores.opened() as store:
            twins = await played(Door(store, history.limits), replace(history, crowd=0))
        assert {refusal.rule for refusal in twins.refusals} <= {"lone_crawler", "all_crawlers", "hit_stack"}

    stores.run(scenario())


@over(st.lists(st.sampled_from(CALLERS), min_size=10, max_size=60), examples=100)
def test_promise_11_who_keeps_to_the_rates_is_never_refused(stores: StoreKind, order: list[Caller]) -> None:
    """Each caller comes at the first instant at which the page has nothing against it."""

    async def scenario() -> None:
        async with stores.opened() as store:
            door, page, instant = Door(store, Limits()), page_of(Limits()), START
            for caller in order:
                instant += page.wait_left(caller, instant)
                assert page.handle_request(caller, instant) is None
                assert await door.is_served(caller, instant)

    stores.run(scenario())


@at_the_door()
async def test_promise_11_bots_are_served_at_once_while_there_is_room(door: Door) -> None:
    for number in range(15):
        assert isinstance(await door.ask(feed_reader(number), START), Served)
