"""What is the memory store's own: its cap, its speed where a stack is deep, and its pause."""

import math
import time
import tracemalloc
from typing import Any

import pytest

from tests.door import START
from tests.pseudocode import SECOND
from tests.virtual_clock import in_virtual_time
from throttle.server.rule import Deferred, Hashes, Key, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.stores import Pause
from throttle.server.stores.hit_log import SHARDS
from throttle.server.stores.memory import MemoryStore, Prepared

CAP = 6 * 3 * SHARDS
"""six callers in each generation of each shard"""
STACK = Rule("hit_stack", at_most=10, seconds=15, key=Key.CALLER, holds_refused=True)
LONE = Rule("lone_crawler", at_most=1, seconds=30, key=Key.ADDRESS_AND_CRAWLER)


def hashes(caller: int) -> Hashes:
    return 0, caller, caller


class Store:
    """A small memory store behind one rule."""

    def __init__(self, rule: Rule = STACK, cap: int = CAP) -> None:
        self.store = MemoryStore(max_callers=cap)
        self.prepared: Prepared = self.store.prepare([rule])

    def ask(self, caller: int, now: int = START) -> Verdict:
        verdict = self.store.admit(self.prepared, hashes(caller), now, 0)
        if isinstance(verdict, Served):
            self.store.release()
        return verdict

    def hits_of(self, caller: int, now: int = START) -> int:
        """How many hits are remembered, found out by one more."""
        verdict = self.ask(caller, now)
        [(_, left, _)] = verdict.quotas
        return 10 - left - 1 if isinstance(verdict, Served) else 10

    def is_flooded(self, callers: int, *, times: int = 1, now: int = START) -> None:
        """By strangers, evenly over the shards."""
        for stranger in range(1_000_000, 1_000_000 + callers):
            for _ in range(times):
                self.ask(stranger, now)


def test_promise_7_memory_is_bounded_whatever_callers_come() -> None:
    store = Store()
    store.is_flooded(2 * CAP)
    tracemalloc.start()
    try:
        store.is_flooded(5 * CAP, now=START + 1)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 250 * CAP, "it grew by less than the memory of a full store, though 5 times as many came"


@pytest.mark.parametrize("rule", [STACK, LONE], ids=lambda rule: rule.name)
def test_promise_7_never_more_callers_are_held_under_a_rule_than_the_cap(rule: Rule) -> None:
    store = Store(rule)
    [log] = store.store._hits.values()
    for times in (1, 2, 10):
        for moment in range(40):
            store.is_flooded(CAP // 10, times=times, now=START + moment * SECOND)
            for stranger in range(CAP // 10):
                store.ask(hash((times, moment, stranger)), START + moment * SECOND)
            assert len(log) <= CAP


def test_promise_7_callers_seen_once_are_dropped_first() -> None:
    store = Store()
    for hits in range(1, 10):
        for _ in range(hits):
            store.ask(hits)
    store.is_flooded(20 * CAP)
    assert [store.hits_of(caller) for caller in range(1, 10)] == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_promise_7_the_refused_are_dropped_last_up_to_a_third_of_the_cap() -> None:
    store = Store()
    refused = range(CAP // 3)
    for caller in refused:
        for _ in range(10):
            assert isinstance(store.ask(caller), Served)
    store.is_flooded(20 * CAP, times=3)
    assert not any(isinstance(store.ask(caller, START + 15 * SECOND - 1), Served) for caller in refused)


def test_promise_7_a_flood_after_the_window_does_not_keep_the_refused_out() -> None:
    store = Store()
    for _ in range(12):
        store.ask(1)
    store.is_flooded(20 * CAP, now=START + SECOND)
    assert isinstance(store.ask(1, START + 15 * SECOND), Served)


def test_promise_7_below_the_cap_nobody_is_forgotten() -> None:
    store = Store()
    callers = range(CAP // 3)
    for caller in callers:
        store.ask(caller)
    assert [store.hits_of(caller, START + 15 * SECOND - 1) for caller in callers] == [1] * len(callers)


def test_a_crawler_that_was_served_is_not_set_free_by_as_many_others_as_a_third_of_the_cap() -> None:
    store = Store(LONE)
    for crawler in range(CAP // 3):
        assert isinstance(store.ask(crawler), Served)
    assert not isinstance(store.ask(0, START + 30 * SECOND - 1), Served)


@pytest.mark.parametrize("cap", [0, -1, 191, 1e6, math.nan, True, "192", None], ids=repr)
def test_a_cap_that_makes_no_sense_is_refused_by_name(cap: Any) -> None:
    with pytest.raises(ValueError, match=r"^MemoryStore\(max_callers=.*whole number from 192"):
        MemoryStore(max_callers=cap)


def test_a_stack_of_thousands_of_hits_is_forgotten_without_a_stall() -> None:
    """Hit by hit, 10,000 took 30 ms; other requests wait as long."""
    deep = Rule("hit_stack", at_most=10_000, seconds=15, key=Key.CALLER, holds_refused=True)
    took = []
    for _ in range(5):
        store = Store(deep)
        for microsecond in range(10_000):
            store.ask(1, START + microsecond)
        began = time.perf_counter()
        verdict = store.ask(1, START + 15 * SECOND + 9_998)
        took.append(time.perf_counter() - began)
        assert [(left, reset) for _, left, reset in verdict.quotas] == [(9_998, 1)]
    assert min(took) < 0.005


def test_a_pause_ends_at_its_instant_on_the_clock_that_was_given() -> None:
    store = MemoryStore(clock=lambda: 1_000.5)
    store.pause(60)
    assert store.paused == Pause(round(1_060.5 * SECOND), early=False)
    store.pause(early=True)
    assert store.paused == Pause(None, early=True)
    store.resume()
    assert store.paused is None


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, 10**400, "60"], ids=lambda value: repr(value)[:12])
def test_a_pause_that_makes_no_sense_is_refused_and_changes_nothing(seconds: Any) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"^pause\(seconds="):
        store.pause(seconds)
    assert store.paused is None


# Two sets of limits on one store: they changed at run time, or two sites share it.


def test_a_rule_with_a_longer_window_keeps_its_hits_beside_one_with_a_shorter() -> None:
    store = MemoryStore(max_callers=CAP)
    short = store.prepare([Rule("stack", at_most=1, seconds=2, key=Key.CALLER)])
    long = store.prepare([Rule("stack", at_most=1, seconds=60, key=Key.CALLER)])
    assert isinstance(store.admit(long, hashes(64), START, 0), Served)
    for second in range(1, 59):
        store.admit(short, hashes(64 * (second + 1)), START + second * SECOND, 0)
    assert not isinstance(store.admit(long, hashes(64), START + 59 * SECOND, 0), Served)
    assert isinstance(store.admit(long, hashes(64), START + 60 * SECOND, 0), Served)


def test_a_lowered_limit_tells_the_wait_until_fewer_than_that_are_held() -> None:
    store = MemoryStore(max_callers=CAP)
    high = store.prepare([Rule("stack", at_most=3, seconds=10, key=Key.CALLER)])
    low = store.prepare([Rule("stack", at_most=1, seconds=10, key=Key.CALLER)])
    for second in range(3):
        store.admit(high, hashes(7), START + second * SECOND, 0)
    refused = store.admit(low, hashes(7), START + 3 * SECOND, 0)
    assert isinstance(refused, Refused)
    assert refused.retry_after == 9 * SECOND
    assert isinstance(store.admit(low, hashes(7), START + 12 * SECOND, 0), Served)


@in_virtual_time
async def test_at_shutdown_a_sleeper_is_refused_by_the_rule_under_which_it_sleeps() -> None:
    store = MemoryStore()
    prepared = store.prepare([LoadRule("one_at_a_time", at_most=0, sleeping_max=1)])
    deferred = store.admit(prepared, (0, 1, 0), 0, 0)
    assert isinstance(deferred, Deferred)
    store.close()
    refused = store.admit(prepared, (0, 1, 0), 0, 0, deferred.sleeper)
    assert isinstance(refused, Refused)
    assert refused.rule == "one_at_a_time"


# All rules together


@pytest.mark.parametrize("max_bytes", [0, (1 << 20) - 1, True, 1e9, "512", None])
def test_bytes_that_no_site_could_mean_are_refused(max_bytes: Any) -> None:
    with pytest.raises(ValueError, match=r"MemoryStore\(max_bytes=.*whole number from 1048576"):
        MemoryStore(max_bytes=max_bytes)


def test_all_rules_together_hold_no_more_callers_than_the_bytes_are_for() -> None:
    store = MemoryStore(max_bytes=1 << 20)
    rules = [Rule(f"rule {number}", at_most=3, seconds=1000, key=Key.CALLER) for number in range(8)]
    prepared = [store.prepare(rules[:count]) for count in (1, 4, 8)]  # a class is compiled when its first caller comes
    for number in range(30_000):
        store.admit(prepared[number * 3 // 30_000], (0, hash(("caller", number)), 0), 1_000_000 + number, 0)
    held = sum(len(hits) for hits in vars(store)["_hits"].values())
    assert held * 150 <= 1 << 20
    assert held > 1_000
