"""Rules that are in force only under load, and sleepers counted by network; for each kind of store."""

from dataclasses import replace

from tests.door import CHROME, FEED_READER, START, Door, at_the_door, hashes, settled
from tests.pseudocode import SECOND, Caller
from throttle.server.policy import Limits
from throttle.server.rule import Key, Refused, Rule, Served

# Of four places, two are half: then a network's bots have two hits, a wider network's three.
SHARES = Limits(load_max=4, stack_hits=None, share_hits=2, wide_share_hits=3)
NETWORKS = Limits(stack_hits=None, network_hits=3, network_bot_hits=2)


def bot(address: str, agent: str = "curl/8") -> Caller:
    return replace(FEED_READER, address=address, agent=agent)


@at_the_door(SHARES)
async def test_while_there_is_room_a_network_may_take_more_than_its_share(door: Door) -> None:
    await door.is_running(1)
    for agent in range(9):
        assert await door.is_served(bot("192.0.2.1", f"bot {agent}"), START)


@at_the_door(SHARES)
async def test_under_load_the_bots_of_a_network_have_its_share_whatever_their_agents_and_addresses(door: Door) -> None:
    await door.is_running(2)
    assert await door.is_served(bot("192.0.2.1", "one"), START)
    assert await door.is_served(bot("192.0.2.99", "two"), START + SECOND)
    refusal = await door.is_refused_by("share", bot("192.0.2.3", "three"), START + 2 * SECOND)
    assert refusal.retry_after == 13 * SECOND
    assert await door.is_served(bot("192.0.9.1"), START + 2 * SECOND), "another network"
    assert await door.is_served(bot("192.0.2.3", "three"), START + 15 * SECOND)


@at_the_door(SHARES)
async def test_under_load_neighbouring_networks_share_too(door: Door) -> None:
    await door.is_running(2)
    for network in range(3):
        assert await door.is_served(bot(f"192.0.{network}.1"), START)
    await door.is_refused_by("wide_share", bot("192.0.3.1"), START)
    assert await door.is_served(bot("192.1.3.1"), START)


@at_the_door(SHARES)
async def test_hits_count_in_a_share_only_while_it_is_in_force(door: Door) -> None:
    for _ in range(5):
        assert await door.is_served(bot("192.0.2.1"), START)
    await door.is_running(2)
    assert await door.is_served(bot("192.0.2.1"), START)
    assert await door.is_served(bot("192.0.2.1"), START)
    await door.is_refused_by("share", bot("192.0.2.1"), START)
    door.store.release()
    assert await door.is_served(bot("192.0.2.1"), START), "one runs: less than half"


@at_the_door(replace(SHARES, network_bot_hits=3, load_max=2))
async def test_a_wait_told_while_there_is_room_holds_under_load_too(door: Door) -> None:
    caller = bot("192.0.2.1")
    assert await door.is_served(caller, START)
    await door.is_running(1)
    for _ in range(2):
        assert await door.is_served(caller, START + 10 * SECOND)
    door.store.release()
    told = await door.is_refused_by("network_bots", caller, START + 12 * SECOND)
    assert told.retry_after == 13 * SECOND, "as the share will want it, though it is not in force"
    await door.is_running(1)
    await door.is_refused_by("share", caller, START + 25 * SECOND - 1)
    assert await door.is_served(caller, START + 25 * SECOND)


@at_the_door(SHARES)
async def test_what_is_served_under_no_share_tells_of_none(door: Door) -> None:
    verdict = await door.ask(bot("192.0.2.1"), START)
    assert isinstance(verdict, Served)
    assert [rule.name for rule, _, _ in verdict.quotas] == []
    await door.is_running(1)
    verdict = await door.ask(bot("192.0.2.1"), START)
    assert [rule.name for rule, _, _ in verdict.quotas] == ["share", "wide_share"]


@at_the_door(replace(SHARES, stack_hits=1))
async def test_a_refusal_tells_of_every_rule_in_its_order_in_force_or_not(door: Door) -> None:
    assert await door.is_served(bot("192.0.2.1"), START)
    refusal = await door.is_refused_by("hit_stack", bot("192.0.2.1"), START)
    assert [(rule.name, left) for rule, left, _ in refusal.quotas] == [
        ("hit_stack", 0),
        ("share", 2),
        ("wide_share", 3),
    ]


@at_the_door(replace(SHARES, load_is_asked_last=True, network_bot_hits=9, wide_share_hits=1, share_hits=None))
async def test_a_rule_left_out_does_not_confuse_the_waits_of_those_around_it(door: Door) -> None:
    await door.is_running(2)
    assert await door.is_served(bot("192.0.2.1"), START)
    refusal = await door.is_refused_by("wide_share", bot("192.0.9.1"), START + SECOND)
    assert [(r.name, left, reset) for r, left, reset in refusal.quotas] == [
        ("network_bots", 9, 0),
        ("wide_share", 0, 14 * SECOND),
    ]


@at_the_door()
async def test_a_rule_left_out_before_the_one_that_refuses_is_told_in_its_place(door: Door) -> None:
    rules = [
        Rule("busy", at_most=5, seconds=9, key=Key.CALLER, from_load=2),
        Rule("strict", at_most=1, seconds=4, key=Key.CALLER),
        Rule("last", at_most=7, seconds=2, key=Key.CALLER),
    ]
    prepared, keys = door.store.prepare(rules), hashes(CHROME)
    for wanted in (Served, Refused):
        verdict = await settled(door.store.admit(prepared, keys, START, 0))
        assert type(verdict) is wanted
    assert [(rule.name, left, reset // SECOND) for rule, left, reset in verdict.quotas] == [
        ("busy", 5, 0),
        ("strict", 0, 4),
        ("last", 6, 2),
    ]


@at_the_door(NETWORKS)
async def test_a_network_has_a_ceiling_whatever_the_agents_and_a_refused_hit_does_not_count_in_it(door: Door) -> None:
    for second in range(3):
        caller = replace(CHROME, address=f"192.0.2.{second}", agent=f"Chrome/{second}")
        assert await door.is_served(caller, START + second * SECOND)
    for second in range(3, 15):
        await door.is_refused_by("network", replace(CHROME, agent="Chrome/9"), START + second * SECOND)
    assert await door.is_served(replace(CHROME, agent="Chrome/9"), START + 15 * SECOND)


@at_the_door(NETWORKS)
async def test_the_bots_of_a_network_have_a_ceiling_of_their_own(door: Door) -> None:
    assert await door.is_served(bot("192.0.2.1", "one"), START)
    assert await door.is_served(bot("192.0.2.2", "two"), START)
    await door.is_refused_by("network_bots", bot("192.0.2.3", "three"), START)
    assert await door.is_served(CHROME, START), "people are counted apart"


@at_the_door(Limits(load_max=1, sleeping_max=5, sleepers_per_network=2, stack_hits=None))
async def test_of_one_network_at_most_so_many_sleep(door: Door) -> None:
    await door.is_running(1)
    first = await door.sleeps(bot("192.0.2.1", "one"), START)
    await door.sleeps(bot("192.0.2.2", "two"), START)
    await door.is_refused_by("load_defer", bot("192.0.2.3", "three"), START)
    await door.sleeps(bot("192.0.9.1"), START)
    door.store.leave(first)
    await door.sleeps(bot("192.0.2.3", "three"), START)
    await door.is_refused_by("load_defer", bot("192.0.2.1", "one"), START)
    assert door.store.sleeping == 3


@at_the_door(Limits(load_max=1, sleeping_max=5, sleepers_per_network=1, stack_hits=None))
async def test_a_sleeper_that_asks_again_is_not_counted_against_itself(door: Door) -> None:
    await door.is_running(1)
    caller = bot("192.0.2.1")
    sleeper = await door.sleeps(caller, START)
    verdict = await door.ask(caller, START + SECOND, sleeper)
    assert getattr(verdict, "sleeper", None) is sleeper
    door.store.release()
    assert isinstance(await door.ask(caller, START + SECOND, sleeper), Served)
    await door.sleeps(caller, START + SECOND)


@at_the_door(Limits(load_max=1, sleeping_max=5, sleepers_per_network=1, stack_hits=None))
async def test_a_sleeper_that_was_called_still_counts_until_it_has_asked(door: Door) -> None:
    await door.is_running(1)
    sleeper = await door.sleeps(bot("192.0.2.1", "one"), START)
    door.store.release()
    await door.told()
    assert sleeper.woken.done()
    await door.is_refused_by("load_defer", bot("192.0.2.2", "two"), START)
    assert isinstance(await door.ask(bot("192.0.2.1", "one"), START, sleeper), Served)
    await door.sleeps(bot("192.0.2.2", "two"), START)


@at_the_door(Limits(load_max=1, sleeping_max=2, sleepers_per_network=1, stack_hits=None))
async def test_where_all_beds_are_taken_a_network_without_a_sleeper_has_none_either(door: Door) -> None:
    await door.is_running(1)
    await door.sleeps(bot("192.0.1.1"), START)
    await door.sleeps(bot("192.0.2.1"), START)
    await door.is_refused_by("load_defer", bot("192.0.3.1"), START)


@at_the_door(Limits(load_max=1, stack_hits=1, load_is_asked_last=True))
async def test_with_the_load_asked_last_who_is_refused_by_the_stack_does_not_sleep(door: Door) -> None:
    assert await door.is_served(FEED_READER, START)
    await door.is_running(1)
    await door.is_refused_by("hit_stack", FEED_READER, START)
    assert door.store.sleeping == 0
