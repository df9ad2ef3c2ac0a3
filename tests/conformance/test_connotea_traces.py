"""The original program's own verdicts on 30 histories, against ours.

In four kinds of history every verdict is the same. In `all_rules` 23 of 660 differ, and all of them because a
crawler's clocks start when it is served here, and started when it was checked there (README, «Where we differ»).
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.door import Door, StoreKind, serve_unasked, sleep_unasked
from tests.pseudocode import ALL, SECOND, SLEEP, Caller, Original, Page
from throttle.server.agents import CallerClass, classify
from throttle.server.policy import Delay, Limits
from throttle.server.rule import Deferred, Refused

History = dict[str, Any]
Clock = tuple[tuple[str | None, ...], int]
"""under which key, and when it started"""

TRACES = Path(__file__).parent.parent / "data" / "connotea_traces.jsonl"
HISTORIES: list[History] = [json.loads(line) for line in TRACES.read_text().splitlines()]
SAME = [history for history in HISTORIES if history["kind"] != "all_rules"]
ALL_RULES = [history for history in HISTORIES if history["kind"] == "all_rules"]

GROUP = {
    None: None,
    "lone_crawler": "bot_throttle",
    "all_crawlers": "bot_throttle",
    "load_defer": "bot_throttle",
    "hit_stack": "dynamic_throttle",
}
"""A check's group in the page's pseudo-code, which is what a history tells of a refusal."""


def by_id(history: History) -> str:
    return str(history["id"])


def caller(event: dict[str, Any], config: dict[str, Any]) -> Caller:
    """Who asks, by the history's own lists."""
    address, agent = event["ip"], event["agent"]
    if not agent:
        return Caller("known crawler", address, agent, "-")
    for name in config["crawlers"]:
        if name in agent:
            return Caller("known crawler", address, agent, name)
    is_browser = any(re.search(pattern, agent) for pattern in config["browsers"])
    return Caller("browser" if is_browser else "assumed bot", address, agent)


def page_of(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "lone": config["lone"] * SECOND or None,
        "all_": config["all"] * SECOND or None,
        "window": config["window"] * SECOND,
        "max_hits": config["max_hits"],
        "load_max": config["load_max"],
        "sleeping_max": config["sleeping_max"],
    }


def limits_of(config: dict[str, Any]) -> Limits:
    return Limits(
        lone_crawler_seconds=config["lone"] or None,
        all_crawlers_seconds=config["all"] or None,
        stack_seconds=config["window"],
        stack_hits=config["max_hits"] if config["max_hits"] <= 10_000 else None,  # a million: never reached
        load_max=config["load_max"],
        sleeping_max=config["sleeping_max"],
        defer_delay=Delay(*config["defer"]),
        wait_told=Delay(*config["wait"]),
    )


def original(history: History) -> list[str | None]:
    """The check for which the original refused each request, None where it served."""
    page = Original(**page_of(history["config"]))
    return [original_verdict(page, event, caller(event, history["config"])) for event in history["events"]]


def original_verdict(page: Original, event: dict[str, Any], who: Caller) -> str | None:
    now, others = event["t"] * SECOND, event["already_sleeping"]
    why = page.handle_request(who, now, load=event["load"], sleeping_count=others + 1)
    return page.wake(who, now, load=event["load_after_sleep"]) if why == SLEEP else why


def ours(history: History) -> list[str | None]:
    """The check for which the page refuses each request, with our order of clocks."""
    page = Page(**page_of(history["config"]))
    return [our_verdict(page, event, caller(event, history["config"])) for event in history["events"]]


def our_verdict(page: Page, event: dict[str, Any], who: Caller) -> str | None:
    now, others = event["t"] * SECOND, event["already_sleeping"]
    why = page.handle_request(who, now, load=event["load"], sleeping_count=others + 1)
    if why == SLEEP:
        why = page.handle_request(who, now, load=event["load_after_sleep"], has_slept=True)
    return why


async def at_our_door(door: Door, event: dict[str, Any], who: Caller) -> tuple[str | None, bool]:
    """The rule by which policy and store refuse one request of a history, and whether it slept."""
    now, store = event["t"] * SECOND, door.store
    await serve_unasked(store, event["load"] - 1)
    sleepers = await sleep_unasked(store, event["already_sleeping"])
    verdict = await door.ask(who, now)
    sleeper = verdict.sleeper if isinstance(verdict, Deferred) else None
    if sleeper is not None:
        for _ in range(event["load"] - 1):
            store.release()
        await serve_unasked(store, event["load_after_sleep"] - 1)
        verdict = await door.ask(who, now, sleeper)
        store.leave(sleeper)  # its time is over
    while store.load:
        store.release()
    for other in sleepers:
        store.leave(other)
    assert store.sleeping == 0
    return verdict.rule if isinstance(verdict, Refused) else None, sleeper is not None


def asked_at_our_door(history: History, stores: StoreKind) -> list[tuple[str | None, bool]]:
    async def scenario() -> list[tuple[str | None, bool]]:
        async with stores.opened() as store:
            door = Door(store, limits_of(history["config"]))
            return [await at_our_door(door, event, caller(event, history["config"])) for event in history["events"]]

    answers: list[tuple[str | None, bool]] = stores.run(scenario())
    return answers


def test_there_are_30_histories_with_2660_verdicts() -> None:
    assert len(HISTORIES) == 30
    assert Counter({kind: count(kind) for kind in {history["kind"] for history in HISTORIES}}) == Counter(
        hit_stack=710, last_hit_lone=470, last_hit_all=350, load=470, all_rules=660
    )


def count(kind: str) -> int:
    return sum(len(history["events"]) for history in HISTORIES if history["kind"] == kind)


def test_every_refusal_of_theirs_is_a_503_and_everything_else_a_200() -> None:
    for history in HISTORIES:
        for event in history["events"]:
            assert event["status"] == (200 if event["rule"] is None else 503)


def test_our_lists_tell_their_callers_apart_as_theirs_did() -> None:
    for history in HISTORIES:
        for event in history["events"]:
            theirs = caller(event, history["config"])
            agent = classify(event["agent"].encode())
            assert (agent.caller_class, agent.crawler) == (CallerClass(theirs.kind), theirs.crawler)


@pytest.mark.parametrize("history", SAME, ids=by_id)
def test_where_one_rule_is_at_work_every_verdict_is_the_originals(history: History, stores: StoreKind) -> None:
    answers = asked_at_our_door(history, stores)
    assert [GROUP[rule] for rule, _ in answers] == [event["rule"] for event in history["events"]]
    assert [has_slept for _, has_slept in answers] == [event["slept"] > 0 for event in history["events"]]


@pytest.mark.parametrize("history", HISTORIES, ids=by_id)
def test_policy_and_store_give_the_pages_verdict_on_every_request(history: History, stores: StoreKind) -> None:
    assert [rule for rule, _ in asked_at_our_door(history, stores)] == ours(history)


@pytest.mark.parametrize("history", HISTORIES, ids=by_id)
def test_the_page_with_the_originals_order_of_clocks_gives_every_verdict_of_theirs(history: History) -> None:
    assert [GROUP[rule] for rule in original(history)] == [event["rule"] for event in history["events"]]


def test_in_all_rules_23_of_660_differ_and_each_because_a_clock_of_theirs_started_unserved(stores: StoreKind) -> None:
    """One by one: each verdict that differs rests on a clock that a request started which one of the two refused."""
    reasons: Counter[str] = Counter()
    for history in ALL_RULES:
        answers = [rule for rule, _ in asked_at_our_door(history, stores)]
        theirs = [event["rule"] for event in history["events"]]
        differ = [place for place, rule in enumerate(answers) if GROUP[rule] != theirs[place]]
        assert differ == [place for place, why in enumerate(reasons_to_differ(history)) if why]
        reasons.update(why for why in reasons_to_differ(history) if why)
    assert reasons == {
        "they refuse for a clock that a refused request started": 21,
        "we refuse for a clock that a request started which they refused": 2,
    }


def reasons_to_differ(history: History) -> list[str | None]:
    """For each request on whose verdict page and original differ, why; the reason is looked up in their clocks."""
    config = history["config"]
    page, program = Page(**page_of(config)), Original(**page_of(config))
    served_by_us: set[Clock] = set()
    served_by_them: set[Clock] = set()
    reasons: list[str | None] = []
    for event in history["events"]:
        who, now = caller(event, config), event["t"] * SECOND
        clocks_of_ours, clocks_of_theirs = clocks_against(page, who, now), clocks_against(program, who, now)
        mine, other = our_verdict(page, event, who), original_verdict(program, event, who)
        reason = None
        if mine is None and other is not None:
            assert clocks_of_theirs[other]
            assert clocks_of_theirs[other].isdisjoint(served_by_them)
            reason = "they refuse for a clock that a refused request started"
        elif mine is not None and other is None:
            assert clocks_of_ours[mine]
            assert clocks_of_ours[mine] <= served_by_us - served_by_them
            reason = "we refuse for a clock that a request started which they refused"
        else:
            assert GROUP[mine] == GROUP[other]
        reasons.append(reason)
        if who.crawler is not None:
            clocks = {(who.address_and_crawler, now), (ALL, now)}
            served_by_us |= clocks if mine is None else set()
            served_by_them |= clocks if other is None else set()
    return reasons


def clocks_against(page: Page, who: Caller, now: int) -> dict[str, set[Clock]]:
    """Under which key and when the clocks started that run against a crawler now, by check."""
    checks = {"lone_crawler": (page.lone, who.address_and_crawler), "all_crawlers": (page.all, ALL)}
    return {
        check: {(key, hit) for hit in page.last_hits.get(key, ()) if interval and now - hit < interval}
        for check, (interval, key) in checks.items()
    }


@pytest.mark.parametrize("history", HISTORIES, ids=by_id)
def test_the_delays_are_theirs_too(history: History) -> None:
    """Load × multiplier + adjustment within a minimum and a maximum, both to sleep and to be told on refusal."""
    limits = limits_of(history["config"])
    for event, why in zip(history["events"], original(history), strict=True):
        if event["slept"]:
            assert event["slept"] == limits.defer_delay.seconds(event["load"])
        if why == "load_defer" and event["slept"]:
            assert event["retry_after"] == limits.wait_told.seconds(event["load_after_sleep"])
