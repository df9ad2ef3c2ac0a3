"""The rules of `Limits.modern`: what is asked of whom, in which order."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.asgi import FEED_READER, Request, ask, http_scope
from tests.server.site import Gate, site
from tests.virtual_clock import in_virtual_time
from throttle.server.agents import CallerClass
from throttle.server.policy import COUNTS_OR_NONE, Limits, handle_request, wake_rank
from throttle.server.rule import Key, LoadRule, Rule

BROWSER, CRAWLER, BOT = CallerClass.BROWSER, CallerClass.KNOWN_CRAWLER, CallerClass.ASSUMED_BOT
MODERN = Limits.modern()

STACK = Rule("hit_stack", at_most=10, seconds=15, key=Key.CALLER, holds_refused=True)
PARTS = replace(STACK, name="parts", at_most=100)
NETWORK = Rule("network", at_most=300, seconds=15, key=Key.NETWORK)
OF_BOTS = [
    Rule("network_bots", at_most=60, seconds=15, key=Key.NETWORK),
    Rule("share", at_most=5, seconds=15, key=Key.NETWORK, from_load=8),
    Rule("wide_share", at_most=20, seconds=15, key=Key.WIDE_NETWORK, from_load=8),
]
LOAD = LoadRule("load_defer", at_most=15, sleeping_max=10, sleepers_per_key=2)
LOAD_OF_STRANGERS = replace(LOAD, at_most=10, sleeping_max=7)


def rules(caller_class: CallerClass, limits: Limits = MODERN, **kind: bool) -> list[Rule | LoadRule]:
    return list(handle_request(caller_class, limits, **kind))


def test_a_browser_is_asked_for_its_stack_and_its_network_and_never_for_the_load() -> None:
    assert rules(BROWSER) == [STACK, NETWORK]


def test_what_a_page_loads_has_a_wider_stack_and_ceiling() -> None:
    assert rules(BROWSER, is_part=True) == [PARTS, replace(NETWORK, name="network_parts", at_most=3000)]


def test_a_bot_is_asked_for_the_load_last() -> None:
    assert rules(BOT) == [STACK, *OF_BOTS, LOAD_OF_STRANGERS]


def test_a_crawler_keeps_its_clocks() -> None:
    asked = rules(CRAWLER)
    assert [rule.name for rule in asked[:2]] == ["lone_crawler", "all_crawlers"]
    assert asked[2:] == rules(BOT)


def test_the_last_third_of_places_and_beds_is_kept_for_acquaintances() -> None:
    assert rules(BOT, is_acquaintance=True)[-1] == LOAD
    assert rules(BOT)[-1] == LOAD_OF_STRANGERS


@pytest.mark.parametrize(("load_max", "for_strangers"), [(1, 1), (2, 2), (3, 2), (4, 3), (100, 67)])
def test_there_is_always_a_place_for_a_stranger(load_max: int, for_strangers: int) -> None:
    asked = rules(BOT, Limits.modern(load_max=load_max))[-1]
    assert asked.at_most == for_strangers


def test_every_stranger_wakes_after_every_acquaintance() -> None:
    ranks = [wake_rank(kind, is_stranger=stranger) for stranger in (False, True) for kind in (BOT, CRAWLER)]
    assert ranks == sorted(set(ranks))


def test_what_is_not_of_the_page_is_off_in_the_page() -> None:
    own = {name: None for name in COUNTS_OR_NONE if name != "stack_hits"}
    off = dict.fromkeys(("load_is_asked_last", "cookies", "need_fetch_metadata", "verify_crawlers"), False)
    assert Limits.modern(**own, **off) == Limits()


def test_a_threshold_may_be_given_beside_those_of_the_preset() -> None:
    assert Limits.modern(load_max=30, cookies=False) == replace(MODERN, load_max=30, cookies=False)


@pytest.mark.parametrize("name", COUNTS_OR_NONE)
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3", 10_001])
def test_counts_that_no_site_could_mean_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"Limits\({name}=.*whole number from 1 to 10000.*\(None turns the rule off\)"
    ):
        Limits(**{name: value})


@pytest.mark.parametrize("name", ["load_is_asked_last", "cookies"])
def test_a_switch_is_true_or_false(name: str) -> None:
    with pytest.raises(ValueError, match=rf"Limits\({name}=1\): True or False"):
        Limits(**{name: 1})  # type: ignore[arg-type]


# At the whole site


@in_virtual_time
async def test_ten_thousand_strangers_do_not_crowd_out_a_feed_reader_that_the_site_has_met() -> None:
    gate = Gate()
    app = site(gate, limits=MODERN)
    for _ in range(3):
        assert (await ask(app, agent=FEED_READER, client="203.0.113.9")).status == 200
        await asyncio.sleep(60)
    strangers = [
        Request(app, http_scope("/slow", agent="curl/8", client=f"{10 + number % 90}.{number // 90}.0.1"))
        for number in range(10_000)
    ]
    await asyncio.sleep(0.001)
    assert (gate.running, app.store.sleeping) == (10, 7), "strangers have ten places and seven beds"
    assert (await ask(app, agent=FEED_READER, client="203.0.113.9")).status == 200
    assert (await ask(app, agent=FEED_READER, client="203.0.113.10")).status == 503, "one that it has not met"
    gate.opened.set()
    for stranger in strangers:
        await stranger.finished()
    assert (app.store.load, app.store.sleeping) == (0, 0)


@pytest.mark.parametrize("load_max", [2, 3], ids=["by its rank alone", "and by the place that is kept"])
@in_virtual_time
async def test_an_acquaintance_that_slept_wakes_before_strangers_who_slept_longer(load_max: int) -> None:
    gate = Gate()
    app = site(gate, limits=Limits.modern(load_max=load_max, sleeping_max=9))
    for _ in range(3):
        assert (await ask(app, agent=FEED_READER, client="203.0.113.9")).status == 200
        await asyncio.sleep(60)
    people = [Request(app, http_scope("/slow", client=f"198.51.{number}.1")) for number in range(3)]
    await asyncio.sleep(0)
    strangers = [Request(app, http_scope(agent="curl/8", client=f"198.{number}.0.1")) for number in range(3)]
    await asyncio.sleep(1)
    friend = Request(app, http_scope(agent=FEED_READER, client="203.0.113.9"))
    await asyncio.sleep(0.001)
    assert app.store.sleeping == 4
    order: list[Request] = []
    for request in (*strangers, friend):
        request.task.add_done_callback(lambda _, request=request: order.append(request))
    gate.opened.set()
    for request in (*people, *strangers, friend):
        await request.finished()
    await asyncio.sleep(0)
    assert order == [friend, *strangers]
    assert [request.answer.status for request in order] == [200] * 4


@in_virtual_time
async def test_one_network_takes_two_beds_whatever_its_agents() -> None:
    gate = Gate()
    app = site(gate, limits=Limits.modern(load_max=1))
    person = Request(app, http_scope("/slow"))
    await asyncio.sleep(0)
    bots = [Request(app, http_scope(agent=f"curl/8.{number}", client=f"10.0.0.{number}")) for number in range(20)]
    await asyncio.sleep(0.001)
    assert app.store.sleeping == 2
    gate.opened.set()
    for request in (person, *bots):
        await request.finished()


@in_virtual_time
async def test_a_refused_visit_makes_no_acquaintance() -> None:
    gate = Gate()
    app = site(gate, limits=Limits.modern(load_max=3, sleeping_max=0))
    strangers = [Request(app, http_scope("/slow", client=f"198.51.{number}.1")) for number in range(2)]
    for _ in range(5):
        assert (await ask(app, agent=FEED_READER)).status == 503
        await asyncio.sleep(60)
    assert (await ask(app, agent=FEED_READER)).status == 503, "two run, and the third place is for acquaintances"
    gate.opened.set()
    for request in strangers:
        await request.finished()
