"""How every store counts what runs and what sleeps, and who wakes first; for each kind of store."""

from dataclasses import replace

from tests.door import (
    CHROME,
    FEED_READER,
    GOOGLEBOT,
    SLURP,
    START,
    Door,
    at_the_door,
    crawler,
    feed_reader,
    left_under,
    person,
    sleep_unasked,
)
from tests.pseudocode import SECOND
from throttle.server.policy import Limits
from throttle.server.rule import Deferred, Refused, Served, Verdict
from throttle.server.sleepers import Woken

ONE_AT_A_TIME = Limits(load_max=1, sleeping_max=3, stack_hits=None)


def refused_by(verdict: Verdict) -> str:
    """The name of the rule that refuses."""
    assert isinstance(verdict, Refused), verdict
    assert not isinstance(verdict, Deferred), verdict
    return verdict.rule


# Load: at most 15 at once, until released


@at_the_door()
async def test_a_bot_passes_as_the_15th_that_runs_and_sleeps_as_the_16th(door: Door) -> None:
    await door.is_running(14)
    assert isinstance(await door.ask(feed_reader(1), START), Served)
    verdict = await door.ask(feed_reader(2), START)
    assert isinstance(verdict, Deferred)
    assert (verdict.rule, verdict.load) == ("load_defer", 16)


@at_the_door()
async def test_peoples_requests_are_part_of_the_load_and_are_never_refused_for_it(door: Door) -> None:
    for number in range(100):
        assert isinstance(await door.ask(person(number), START), Served)
    assert door.store.load == 100
    await door.sleeps(FEED_READER, START)
    await door.sleeps(GOOGLEBOT, START)


@at_the_door()
async def test_a_released_place_is_free(door: Door) -> None:
    await door.is_running(15)
    door.store.release()
    await door.told()
    assert door.store.load == 14
    assert isinstance(await door.ask(FEED_READER, START), Served)
    assert door.store.load == 15


@at_the_door()
async def test_a_refused_or_sleeping_request_is_not_part_of_the_load(door: Door) -> None:
    await door.is_running(15)
    await door.sleeps(FEED_READER, START)
    assert door.store.load == 15
    door.store.release()
    await door.told()
    assert await door.is_served(GOOGLEBOT, START + SECOND) is False, "the sleeper's place is reserved"
    assert door.store.load == 14


@at_the_door(ONE_AT_A_TIME)
async def test_at_most_so_many_sleep_this_one_included(door: Door) -> None:
    await door.is_running(1)
    for number in range(3):
        await door.sleeps(feed_reader(number), START)
    refusal = await door.is_refused_by("load_defer", feed_reader(4), START)
    assert (refusal.load, refusal.retry_after) == (2, 0)
    assert door.store.sleeping == 3


@at_the_door(Limits(load_max=1, sleeping_max=0))
async def test_nobody_sleeps_where_none_may(door: Door) -> None:
    await door.is_running(1)
    await door.is_refused_by("load_defer", FEED_READER, START)


@at_the_door(Limits(load_max=1, lone_crawler_seconds=30, all_crawlers_seconds=2))
async def test_a_bot_that_sleeps_or_is_refused_for_load_starts_no_clock_and_no_hit(door: Door) -> None:
    await door.is_running(1)
    sleeper = await door.sleeps(GOOGLEBOT, START)
    door.store.leave(sleeper)
    await door.told()
    door.store.release()
    await door.told()
    verdict = await door.ask(GOOGLEBOT, START)
    assert isinstance(verdict, Served)
    assert left_under("hit_stack", verdict) == (9, 15 * SECOND)


# Sleepers


@at_the_door(ONE_AT_A_TIME)
async def test_a_sleeper_wakes_as_soon_as_there_is_room_and_not_before(door: Door) -> None:
    await door.is_running(2)
    sleeper = await door.sleeps(FEED_READER, START)
    door.store.release()
    await door.told()
    assert not sleeper.woken.done(), "one still runs, and one is all that may"
    door.store.release()
    await door.told()
    assert await sleeper.woken is Woken.ROOM
    assert isinstance(await door.ask(FEED_READER, START, sleeper), Served)
    assert (door.store.load, door.store.sleeping) == (1, 0)


@at_the_door(Limits(load_max=1, sleeping_max=5, lone_crawler_seconds=1, all_crawlers_seconds=1, stack_hits=None))
async def test_api_clients_and_feed_readers_wake_before_crawlers_then_the_first_to_come(door: Door) -> None:
    await door.is_running(1)
    callers = [crawler(1), feed_reader(1), crawler(2), feed_reader(2)]
    sleepers = {caller: await door.sleeps(caller, START) for caller in callers}
    woken = []
    for second in range(4):
        door.store.release()
        await door.told()
        [caller] = [caller for caller, sleeper in sleepers.items() if sleeper.woken.done()]
        assert isinstance(await door.ask(caller, START + second * SECOND, sleepers.pop(caller)), Served)
        woken.append(caller)
    assert woken == [feed_reader(1), feed_reader(2), crawler(1), crawler(2)]


@at_the_door()
async def test_who_has_no_room_lets_those_pass_who_have_some(door: Door) -> None:
    """Places of a site may have limits for the load of their own: who sleeps at a narrow one keeps nobody waiting."""
    await door.is_running(3)
    narrow, wide = (Door(door.store, Limits(load_max=load_max)) for load_max in (1, 3))
    first, second = feed_reader(1), crawler(2)
    waits, passes = await narrow.sleeps(first, START), await wide.sleeps(second, START)
    door.store.release()
    await door.told()
    assert [sleeper.woken.done() for sleeper in (waits, passes)] == [False, True]
    assert isinstance(await wide.ask(second, START, passes), Served)
    for running in (2, 1, 0):
        door.store.release()
        await door.told()
        assert waits.woken.done() == (running == 0)


@at_the_door()
async def test_each_of_those_who_were_passed_wakes_as_soon_as_it_has_room(door: Door) -> None:
    await door.is_running(4)
    sleepers = []
    for rank, load_max in enumerate((3, 2, 4)):
        sleepers += await sleep_unasked(door.store, 1, rank=rank, at_most=load_max)
    woken = []
    for _ in range(4):
        door.store.release()
        await door.told()
        woken.append([sleeper.woken.done() for sleeper in sleepers])
        for sleeper in sleepers:
            if sleeper.woken.done():
                door.store.leave(sleeper)
        await door.told()
    assert woken == [[False, False, True], [True, False, True], [True, True, True], [True, True, True]]


@at_the_door()
async def test_who_finds_its_place_taken_leaves_what_was_kept_for_it_to_those_who_have_room(door: Door) -> None:
    narrow, wide = (Door(door.store, Limits(load_max=load_max)) for load_max in (2, 3))
    first, second = feed_reader(1), feed_reader(2)
    await door.is_running(2)
    sleeper = await narrow.sleeps(first, START)
    door.store.release()
    await door.told()
    assert sleeper.woken.done()
    assert isinstance(await door.ask(person(1), START), Served), "it takes the place, as the load concerns no person"
    other = await wide.sleeps(second, START)
    assert isinstance(await narrow.ask(first, START, sleeper), Deferred)
    assert other.woken.done()
    assert not sleeper.woken.done()


@at_the_door(ONE_AT_A_TIME)
async def test_one_place_wakes_one_sleeper(door: Door) -> None:
    await door.is_running(1)
    sleepers = [await door.sleeps(feed_reader(number), START) for number in range(3)]
    door.store.release()
    await door.told()
    assert [sleeper.woken.done() for sleeper in sleepers] == [True, False, False]


@at_the_door(ONE_AT_A_TIME)
async def test_a_newcomer_does_not_take_the_place_of_a_sleeper_that_was_woken(door: Door) -> None:
    await door.is_running(1)
    sleeper = await door.sleeps(feed_reader(1), START)
    door.store.release()
    await door.told()
    later = await door.sleeps(feed_reader(2), START)
    assert isinstance(await door.ask(feed_reader(1), START, sleeper), Served)
    assert not later.woken.done()


@at_the_door(ONE_AT_A_TIME)
async def test_a_person_may_take_the_place_of_a_sleeper_that_was_woken_and_it_sleeps_on(door: Door) -> None:
    await door.is_running(1)
    first = await door.sleeps(feed_reader(1), START)
    second = await door.sleeps(feed_reader(2), START)
    door.store.release()
    await door.told()
    assert isinstance(await door.ask(CHROME, START), Served)
    verdict = await door.ask(feed_reader(1), START, first)
    assert isinstance(verdict, Deferred)
    assert verdict.sleeper is first
    assert not first.woken.done()
    door.store.release()
    await door.told()
    assert (first.woken.done(), second.woken.done()) == (True, False), "its place in the order was kept"
    assert isinstance(await door.ask(feed_reader(1), START, first), Served)


@at_the_door(Limits(load_max=1))
async def test_a_woken_sleeper_asks_all_rules_again(door: Door) -> None:
    await door.is_running(1)
    first = await door.sleeps(GOOGLEBOT, START)
    second = await door.sleeps(SLURP, START)
    door.store.release()
    await door.told()
    assert isinstance(await door.ask(GOOGLEBOT, START, first), Served)
    door.store.release()
    await door.told()
    assert second.woken.done()
    assert refused_by(await door.ask(SLURP, START + SECOND, second)) == "all_crawlers"
    assert (door.store.load, door.store.sleeping) == (0, 0)


@at_the_door(Limits(load_max=1, stack_hits=1))
async def test_a_sleeper_that_another_rule_refuses_wakes_the_next(door: Door) -> None:
    await door.is_running(1)
    assert await door.is_served(CHROME, START)
    via_web_api = replace(CHROME, kind="assumed bot")
    refused = await door.sleeps(via_web_api, START)
    next_one = await door.sleeps(FEED_READER, START)
    door.store.release()
    await door.told()
    assert not next_one.woken.done()
    assert refused_by(await door.ask(via_web_api, START + SECOND, refused)) == "hit_stack"
    assert next_one.woken.done()
    assert isinstance(await door.ask(FEED_READER, START + SECOND, next_one), Served)


@at_the_door(ONE_AT_A_TIME)
async def test_a_sleeper_that_leaves_is_gone_and_a_woken_one_wakes_the_next(door: Door) -> None:
    await door.is_running(1)
    first, second, third = [await door.sleeps(feed_reader(number), START) for number in range(3)]
    door.store.leave(second)
    await door.told()
    assert door.store.sleeping == 2
    door.store.release()
    await door.told()
    assert first.woken.done()
    door.store.leave(first)
    await door.told()
    assert third.woken.done()
    assert not second.woken.done()
    assert door.store.sleeping == 1


@at_the_door(ONE_AT_A_TIME)
async def test_a_sleeper_may_leave_twice_and_after_it_was_served(door: Door) -> None:
    await door.is_running(1)
    sleeper, other = await door.sleeps(feed_reader(1), START), await door.sleeps(feed_reader(2), START)
    door.store.release()
    await door.told()
    assert isinstance(await door.ask(feed_reader(1), START, sleeper), Served)
    door.store.leave(sleeper)
    await door.told()
    door.store.leave(sleeper)
    await door.told()
    assert (door.store.load, door.store.sleeping) == (1, 1)
    assert not other.woken.done()


@at_the_door(ONE_AT_A_TIME)
async def test_a_sleeper_whose_time_is_over_asks_a_last_time_and_is_deferred_if_there_is_no_room(door: Door) -> None:
    await door.is_running(1)
    sleeper = await door.sleeps(FEED_READER, START)
    for second in (1, 2):
        verdict = await door.ask(FEED_READER, START + second * SECOND, sleeper)
        assert isinstance(verdict, Deferred)
        assert verdict.sleeper is sleeper
    assert door.store.sleeping == 1, "asking again is not to sleep twice"
    door.store.leave(sleeper)
    await door.told()
    assert door.store.sleeping == 0


@at_the_door(ONE_AT_A_TIME)
async def test_a_sleeper_that_finds_room_when_its_time_is_over_is_served_and_sleeps_no_more(door: Door) -> None:
    await door.is_running(1)
    await sleep_unasked(door.store, 1, rank=-1)  # it stands before all others, so that nobody is woken
    sleeper = await door.sleeps(FEED_READER, START)
    door.store.release()
    assert isinstance(await door.ask(FEED_READER, START, sleeper), Served)
    assert (door.store.load, door.store.sleeping) == (1, 1)


@at_the_door(ONE_AT_A_TIME)
async def test_a_place_that_a_leaving_sleeper_frees_may_be_slept_in_again(door: Door) -> None:
    await door.is_running(1)
    sleepers = [await door.sleeps(feed_reader(number), START) for number in range(3)]
    await door.is_refused_by("load_defer", feed_reader(4), START)
    door.store.leave(sleepers[1])
    await door.told()
    await door.sleeps(feed_reader(4), START)


@at_the_door(ONE_AT_A_TIME)
async def test_at_shutdown_all_wake_and_are_refused_and_nobody_sleeps_any_more(door: Door) -> None:
    await door.is_running(1)
    sleepers = [await door.sleeps(feed_reader(number), START) for number in range(2)]
    door.store.close()
    for number, sleeper in enumerate(sleepers):
        assert await sleeper.woken is Woken.CLOSING
        assert refused_by(await door.ask(feed_reader(number), START, sleeper)) == "load_defer"
    assert door.store.sleeping == 0
    await door.is_refused_by("load_defer", feed_reader(3), START)


@at_the_door(ONE_AT_A_TIME)
async def test_at_shutdown_a_sleeper_is_refused_even_if_a_place_comes_free_at_the_same_time(door: Door) -> None:
    await door.is_running(1)
    first, second = await door.sleeps(feed_reader(1), START), await door.sleeps(feed_reader(2), START)
    door.store.close()
    door.store.release()
    await door.told()
    assert refused_by(await door.ask(feed_reader(1), START, first)) == "load_defer"
    assert refused_by(await door.ask(feed_reader(2), START, second)) == "load_defer"


@at_the_door()
async def test_at_shutdown_people_and_bots_with_room_are_still_served(door: Door) -> None:
    door.store.close()
    assert await door.is_served(CHROME, START)
    assert await door.is_served(FEED_READER, START)


@at_the_door(replace(ONE_AT_A_TIME, stack_hits=2))
async def test_started_again_after_its_shutdown_a_store_has_kept_its_counts_and_lets_sleep(door: Door) -> None:
    assert await door.is_served(FEED_READER, START)
    await door.starts_again()
    assert await door.is_served(FEED_READER, START)
    await door.is_refused_by("hit_stack", FEED_READER, START)
    await door.is_running(1)
    sleeper = await door.sleeps(feed_reader(1), START)
    assert not sleeper.woken.done()
    door.store.release()
    await door.told()
    assert await sleeper.woken is Woken.ROOM
    assert isinstance(await door.ask(feed_reader(1), START, sleeper), Served)


@at_the_door(ONE_AT_A_TIME)
async def test_what_runs_while_the_site_is_started_again_stays_counted(door: Door) -> None:
    await door.is_running(1)
    await door.starts_again()
    await door.sleeps(feed_reader(1), START)
    assert door.store.load == 1
