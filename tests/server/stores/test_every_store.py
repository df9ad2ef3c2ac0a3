"""How every store counts hits, and what it tells; for each kind of store."""

from dataclasses import replace

from tests.door import (
    CHROME,
    FEED_READER,
    FIREFOX,
    GOOGLEBOT,
    NO_STACK,
    SLURP,
    START,
    Door,
    at_the_door,
    left_under,
)
from tests.pseudocode import SECOND
from throttle.server.policy import Limits

TWO_HITS = Limits(stack_hits=2)


# Last hit: at most one held, when served


@at_the_door()
async def test_a_known_crawler_is_refused_within_30_seconds_of_its_last_hit(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    refusal = await door.is_refused_by("lone_crawler", GOOGLEBOT, START + 30 * SECOND - 1)
    assert refusal.retry_after == 1
    assert await door.is_served(GOOGLEBOT, START + 30 * SECOND)


@at_the_door()
async def test_known_crawlers_share_one_clock_of_2_seconds(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    refusal = await door.is_refused_by("all_crawlers", SLURP, START + 2 * SECOND - 1)
    assert refusal.retry_after == 1
    assert await door.is_served(SLURP, START + 2 * SECOND)


@at_the_door()
async def test_a_crawlers_clock_is_its_address_and_name_whatever_its_whole_agent(door: Door) -> None:
    newer = replace(GOOGLEBOT, agent="Googlebot/2.2 (compatible)")
    elsewhere = replace(GOOGLEBOT, address="192.0.2.77")
    other_name = replace(GOOGLEBOT, crawler="Slurp")
    assert await door.is_served(GOOGLEBOT, START)
    await door.is_refused_by("lone_crawler", newer, START + 3 * SECOND)
    assert await door.is_served(elsewhere, START + 3 * SECOND)
    assert await door.is_served(other_name, START + 6 * SECOND)


@at_the_door()
async def test_a_crawlers_clocks_concern_nobody_else(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    for caller in (CHROME, FEED_READER):
        assert await door.is_served(caller, START)
        assert await door.is_served(caller, START)


@at_the_door()
async def test_a_crawler_refused_by_all_waits_on_no_clock_of_its_own(door: Door) -> None:
    assert await door.is_served(SLURP, START)
    await door.is_refused_by("all_crawlers", GOOGLEBOT, START + SECOND)
    assert await door.is_served(GOOGLEBOT, START + 2 * SECOND)


# Hit stack: at most ten held, when served, and when refused by it


@at_the_door()
async def test_the_11th_hit_inside_15_seconds_is_refused(door: Door) -> None:
    for second in range(10):
        assert await door.is_served(CHROME, START + second * SECOND)
    refusal = await door.is_refused_by("hit_stack", CHROME, START + 14 * SECOND)
    assert refusal.retry_after == 2 * SECOND, "the first hit leaves after 1 s, but the refused one has come"


@at_the_door()
async def test_a_hit_exactly_15_seconds_old_has_left(door: Door) -> None:
    for _ in range(10):
        assert await door.is_served(CHROME, START)
    assert await door.is_served(CHROME, START + 15 * SECOND)


@at_the_door()
async def test_a_hit_a_microsecond_short_of_15_seconds_still_counts(door: Door) -> None:
    for _ in range(10):
        assert await door.is_served(CHROME, START)
    await door.is_refused_by("hit_stack", CHROME, START + 15 * SECOND - 1)


@at_the_door(TWO_HITS)
async def test_a_refused_hit_counts_so_hammering_keeps_a_caller_out(door: Door) -> None:
    assert await door.is_served(CHROME, START)
    assert await door.is_served(CHROME, START)
    for second in range(1, 61):
        await door.is_refused_by("hit_stack", CHROME, START + second * SECOND)
    refusal = await door.is_refused_by("hit_stack", CHROME, START + 61 * SECOND)
    assert refusal.retry_after == 14 * SECOND, "until the last hit but one has left"
    assert await door.is_served(CHROME, START + 75 * SECOND)


@at_the_door(TWO_HITS)
async def test_a_stack_is_an_address_and_a_whole_agent(door: Door) -> None:
    elsewhere = replace(CHROME, address="192.0.2.77")
    for caller in (CHROME, FIREFOX, elsewhere):
        assert await door.is_served(caller, START)
        assert await door.is_served(caller, START)
    for caller in (CHROME, FIREFOX, elsewhere):
        await door.is_refused_by("hit_stack", caller, START)


@at_the_door(TWO_HITS)
async def test_a_logged_in_user_has_one_stack_from_anywhere(door: Door) -> None:
    at_home = replace(CHROME, user="ada")
    at_work = replace(FIREFOX, address="192.0.2.77", user="ada")
    assert await door.is_served(at_home, START)
    assert await door.is_served(at_work, START)
    await door.is_refused_by("hit_stack", at_home, START)
    assert await door.is_served(CHROME, START), "the same browser, logged out"


@at_the_door(TWO_HITS)
async def test_a_stack_is_the_callers_own_whatever_its_class(door: Door) -> None:
    via_web_api = replace(CHROME, kind="assumed bot")
    assert await door.is_served(CHROME, START)
    assert await door.is_served(via_web_api, START)
    await door.is_refused_by("hit_stack", CHROME, START)


@at_the_door(TWO_HITS)
async def test_an_exempt_agent_has_no_stack(door: Door) -> None:
    exempt = replace(CHROME, is_stack_exempt=True)
    for _ in range(50):
        assert await door.is_served(exempt, START)


@at_the_door(Limits(lone_crawler_seconds=None, all_crawlers_seconds=2, stack_hits=2))
async def test_a_hit_that_a_bot_rule_refuses_is_not_on_the_stack(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    for tenth in range(1, 20):
        await door.is_refused_by("all_crawlers", GOOGLEBOT, START + tenth * SECOND // 10)
    assert await door.is_served(GOOGLEBOT, START + 2 * SECOND)


@at_the_door(Limits(lone_crawler_seconds=5, all_crawlers_seconds=2, stack_hits=1, stack_seconds=10))
async def test_a_crawlers_clocks_do_not_start_for_a_hit_that_the_stack_refuses(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    await door.is_refused_by("hit_stack", GOOGLEBOT, START + 5 * SECOND)
    assert await door.is_served(SLURP, START + 5 * SECOND)
    await door.is_refused_by("hit_stack", GOOGLEBOT, START + 7 * SECOND)


# What is told


@at_the_door(Limits(lone_crawler_seconds=5, all_crawlers_seconds=30, stack_hits=1, stack_seconds=12))
async def test_the_wait_told_is_the_longest_of_the_rules_that_are_full(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    assert (await door.is_refused_by("lone_crawler", GOOGLEBOT, START + SECOND)).retry_after == 29 * SECOND
    assert await door.is_served(FEED_READER, START)
    assert (await door.is_refused_by("hit_stack", FEED_READER, START + SECOND)).retry_after == 12 * SECOND


@at_the_door(Limits(load_max=1, sleeping_max=0, lone_crawler_seconds=1, all_crawlers_seconds=1, stack_hits=1))
async def test_a_refusal_for_load_tells_the_wait_of_the_timed_rules_too(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    await door.is_running(1)
    assert (await door.is_refused_by("load_defer", GOOGLEBOT, START + 6 * SECOND)).retry_after == 9 * SECOND
    assert (await door.is_refused_by("load_defer", FEED_READER, START + 6 * SECOND)).retry_after == 0


@at_the_door(Limits(stack_hits=3))
async def test_a_served_caller_is_told_what_is_left(door: Door) -> None:
    told = [left_under("hit_stack", await door.visit(CHROME, START + second * SECOND)) for second in (0, 1, 5)]
    assert told == [(2, 15 * SECOND), (1, 14 * SECOND), (0, 10 * SECOND)]
    assert left_under("lone_crawler", await door.visit(GOOGLEBOT, START)) == (0, 30 * SECOND)


@at_the_door(Limits(stack_hits=2))
async def test_a_refused_caller_is_told_what_is_left_under_each_rule(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    refusal = await door.is_refused_by("lone_crawler", GOOGLEBOT, START + 3 * SECOND)
    assert [(rule.name, left, reset) for rule, left, reset in refusal.quotas] == [
        ("lone_crawler", 0, 27 * SECOND),
        ("all_crawlers", 1, 0),
        ("hit_stack", 1, 12 * SECOND),
    ]


@at_the_door()
async def test_a_refusal_tells_the_load_with_itself_counted(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, START)
    await door.is_running(4)
    assert (await door.is_refused_by("lone_crawler", GOOGLEBOT, START)).load == 5


# Keys and numbers


@at_the_door(Limits(lone_crawler_seconds=None, all_crawlers_seconds=None, stack_hits=1))
async def test_each_of_ten_thousand_callers_has_a_stack_of_its_own(door: Door) -> None:
    callers = [replace(CHROME, address=str(number)) for number in range(10_000)]
    for caller in callers:
        assert await door.is_served(caller, START)
    for caller in callers[::97]:
        await door.is_refused_by("hit_stack", caller, START + 15 * SECOND - 1)


@at_the_door(Limits(stack_seconds=0.000_001, stack_hits=1))
async def test_a_window_of_one_microsecond_is_kept(door: Door) -> None:
    assert await door.is_served(CHROME, START)
    assert (await door.is_refused_by("hit_stack", CHROME, START)).retry_after == 1
    assert await door.is_served(CHROME, START + 1)


@at_the_door(Limits(stack_seconds=3e9, stack_hits=1))
async def test_a_window_of_a_lifetime_is_kept(door: Door) -> None:
    far = 3_000_000_000 * SECOND
    assert await door.is_served(CHROME, START)
    assert (await door.is_refused_by("hit_stack", CHROME, START + 1)).retry_after == far
    assert await door.is_served(CHROME, START + 1 + far)


@at_the_door(Limits(stack_seconds=4.1, stack_hits=1))
async def test_a_window_is_the_nearest_whole_number_of_microseconds(door: Door) -> None:
    """4.1 × 1,000,000 is a little less than 4,100,000 in floating point."""
    assert await door.is_served(CHROME, START)
    await door.is_refused_by("hit_stack", CHROME, START + 4_099_999)


@at_the_door()
async def test_a_clock_may_begin_at_zero(door: Door) -> None:
    assert await door.is_served(GOOGLEBOT, 0)
    await door.is_refused_by("lone_crawler", GOOGLEBOT, 30 * SECOND - 1)
    assert await door.is_served(GOOGLEBOT, 30 * SECOND)


@at_the_door(NO_STACK)
async def test_a_switched_off_rule_is_not_asked(door: Door) -> None:
    for _ in range(100):
        assert await door.is_served(CHROME, START)


@at_the_door(Limits(stack_hits=2))
async def test_a_caller_may_be_away_for_any_time_and_is_not_remembered(door: Door) -> None:
    now = START
    for away in (1, 14, 15, 16, 29, 30, 31, 3600, 86_400):
        now += away * SECOND + 15 * SECOND
        assert await door.is_served(CHROME, now)
        assert await door.is_served(CHROME, now + 1)
        await door.is_refused_by("hit_stack", CHROME, now + 2)
