"""The rules that each class of caller is asked, in the page's order, and the numbers that make no sense."""

import math
from typing import Any

import pytest

from throttle.server.agents import CallerClass
from throttle.server.policy import Delay, Limits, handle_request, wake_rank
from throttle.server.rule import Key, LoadRule, Rule

BROWSER, CRAWLER, BOT = CallerClass.BROWSER, CallerClass.KNOWN_CRAWLER, CallerClass.ASSUMED_BOT

LONE = Rule("lone_crawler", at_most=1, seconds=30, key=Key.ADDRESS_AND_CRAWLER)
ALL = Rule("all_crawlers", at_most=1, seconds=2, key=Key.ALL)
LOAD = LoadRule("load_defer", at_most=15, sleeping_max=10)
STACK = Rule("hit_stack", at_most=10, seconds=15, key=Key.CALLER, holds_refused=True)


def rules(caller_class: CallerClass, *, is_stack_exempt: bool = False, **limits: Any) -> list[Rule | LoadRule]:
    return list(handle_request(caller_class, Limits(**limits), is_stack_exempt=is_stack_exempt))


def test_a_browser_is_asked_for_the_hit_stack_only() -> None:
    assert rules(BROWSER) == [STACK]


def test_a_known_crawler_is_asked_for_both_last_hits_then_the_load_then_the_hit_stack() -> None:
    assert rules(CRAWLER) == [LONE, ALL, LOAD, STACK]


def test_an_assumed_bot_is_asked_for_the_load_then_the_hit_stack() -> None:
    assert rules(BOT) == [LOAD, STACK]


@pytest.mark.parametrize("caller_class", CallerClass)
def test_an_exempt_agent_is_asked_for_all_but_the_hit_stack(caller_class: CallerClass) -> None:
    asked = rules(caller_class)
    assert rules(caller_class, is_stack_exempt=True) == [rule for rule in asked if rule != STACK]


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ({"lone_crawler_seconds": None}, [ALL, LOAD, STACK]),
        ({"all_crawlers_seconds": None}, [LONE, LOAD, STACK]),
        ({"stack_hits": None}, [LONE, ALL, LOAD]),
    ],
)
def test_a_rule_set_to_none_is_not_asked(off: dict[str, Any], left: list[Rule | LoadRule]) -> None:
    assert rules(CRAWLER, **off) == left


def test_every_number_of_the_limits_reaches_its_rule() -> None:
    numbers: dict[str, Any] = {
        "lone_crawler_seconds": 31,
        "all_crawlers_seconds": 2.5,
        "load_max": 16,
        "sleeping_max": 11,
        "stack_seconds": 14.5,
        "stack_hits": 9,
    }
    assert rules(CRAWLER, **numbers) == [
        Rule("lone_crawler", at_most=1, seconds=31, key=Key.ADDRESS_AND_CRAWLER),
        Rule("all_crawlers", at_most=1, seconds=2.5, key=Key.ALL),
        LoadRule("load_defer", at_most=16, sleeping_max=11),
        Rule("hit_stack", at_most=9, seconds=14.5, key=Key.CALLER, holds_refused=True),
    ]


def test_the_pages_numbers_are_the_defaults() -> None:
    assert Limits.connotea() == Limits()
    assert Limits() == Limits(
        lone_crawler_seconds=30,
        all_crawlers_seconds=2,
        stack_seconds=15,
        stack_hits=10,
        stack_exempt_agents=(),
        load_max=15,
        sleeping_max=10,
        defer_delay=Delay(multiplier=1, adjustment=0, minimum=0, maximum=30),
        wait_told=Delay(multiplier=1, adjustment=0, minimum=0, maximum=30),
        paused=False,
        pause_early=False,
        pause_exempt=(),
    )


def test_only_known_crawlers_wake_after_the_others() -> None:
    assert wake_rank(BOT) < wake_rank(CRAWLER)


@pytest.mark.parametrize(
    ("delay", "load", "seconds"),
    [
        (Delay(), 16, 16),
        (Delay(), 31, 30),
        (Delay(multiplier=2, adjustment=1), 3, 7),
        (Delay(multiplier=0.5, adjustment=-1), 16, 7),
        (Delay(adjustment=-20, minimum=3), 16, 3),
        (Delay(minimum=5, maximum=5), 0, 5),
        (Delay(multiplier=-1, adjustment=20), 16, 4),
    ],
)
def test_a_delay_grows_with_the_load_within_its_minimum_and_maximum(delay: Delay, load: int, seconds: float) -> None:
    assert delay.seconds(load) == seconds


HUGE = 10**400  # no float holds it
NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, True, False, "30", b"30", [30], 30j]
SECONDS = ["lone_crawler_seconds", "all_crawlers_seconds", "stack_seconds", "pause_seconds"]
COUNTS = ["stack_hits", "load_max", "sleeping_max"]
DELAYS = ["multiplier", "adjustment", "minimum", "maximum"]


def short(value: Any) -> str:
    return repr(value)[:12]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, 0.0, -0.0, -1, -0.5, 1e-7, 4e9, HUGE], ids=short)
@pytest.mark.parametrize("field", SECONDS)
def test_seconds_that_no_site_could_mean_are_refused_by_name(field: str, value: Any) -> None:
    refused(Limits, field, value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, 1.5, 10.0, HUGE], ids=short)
@pytest.mark.parametrize("field", COUNTS)
def test_counts_that_no_site_could_mean_are_refused_by_name(field: str, value: Any) -> None:
    refused(Limits, field, value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, None, HUGE, -HUGE, 1e300], ids=short)
@pytest.mark.parametrize("field", DELAYS)
def test_a_delay_of_no_finite_number_is_refused_by_name(field: str, value: Any) -> None:
    refused(Delay, field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stack_seconds", None),
        ("pause_seconds", None),
        ("load_max", None),
        ("sleeping_max", None),
        ("stack_hits", 0),
        ("load_max", 0),
        ("defer_delay", 30),
        ("wait_told", None),
        ("paused", 1),
        ("paused", "yes"),
        ("pause_early", None),
        ("stack_exempt_agents", "Googlebot"),
        ("need_fetch_metadata", "yes"),
        ("verify_crawlers", 1),
        ("stack_exempt_agents", ("Googlebot", "")),
        ("stack_exempt_agents", (1,)),
        ("stack_exempt_agents", b"Googlebot"),
        ("stack_exempt_agents", None),
        ("stack_exempt_agents", 5),
        ("pause_exempt", "127.0.0.1"),
        ("pause_exempt", [None]),
        ("pause_exempt", 5),
    ],
    ids=repr,
)
def test_a_limit_of_the_wrong_kind_is_refused_by_name(field: str, value: Any) -> None:
    refused(Limits, field, value)


@pytest.mark.parametrize(("minimum", "maximum"), [(2, 1), (-1, 1), (-2, -1)])
def test_a_delay_needs_a_minimum_from_0_to_its_maximum(minimum: float, maximum: float) -> None:
    with pytest.raises(ValueError, match=r"Delay\(minimum=.*maximum="):
        Delay(minimum=minimum, maximum=maximum)


def test_the_error_says_what_to_do() -> None:
    assert said(Limits, "lone_crawler_seconds", 0) == (
        "Limits(lone_crawler_seconds=0): seconds above 0 and below a century are needed (None turns the rule off)"
    )
    assert "below a century" in said(Limits, "stack_seconds", math.inf)
    assert said(Limits, "load_max", 0) == 'Limits(load_max=0): a whole number from 1 to 1000000, or "auto", is needed'
    assert said(Limits, "stack_hits", 0) == (
        "Limits(stack_hits=0): a whole number from 1 to 10000 is needed (None turns the rule off)"
    )


@pytest.mark.parametrize("names", [["curl", "wget"], ("curl", "wget"), (name for name in ("curl", "wget"))])
def test_any_list_of_agents_is_kept_as_a_tuple_and_loses_nothing(names: Any) -> None:
    assert Limits(stack_exempt_agents=names).stack_exempt_agents == ("curl", "wget")


def test_nobody_may_sleep_is_a_limit_that_a_site_could_mean() -> None:
    assert LoadRule("load_defer", at_most=15, sleeping_max=0) in rules(BOT, sleeping_max=0)


def test_limits_cannot_change_after_they_were_compiled() -> None:
    with pytest.raises(AttributeError):
        Limits().load_max = 3  # type: ignore[misc]


def said(kind: Any, field: str, value: Any) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        kind(**{field: value})
    return str(error.value)


def refused(kind: Any, field: str, value: Any) -> None:
    """One ValueError, of one line, that begins with the field and the value as they were given."""
    message = said(kind, field, value)
    assert message.startswith(f"{kind.__name__}({field}={value!r}"[:200])
    assert "\n" not in message
