"""A gate whose number moves, in front of a store."""

from typing import Any

import pytest

from tests.virtual_clock import in_virtual_time
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import Deferred, LoadRule, Part, Refused, Served
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.own_load import OwnLoad

BOT, PERSON, CRAWLER = CallerClass.ASSUMED_BOT, CallerClass.BROWSER, CallerClass.KNOWN_CRAWLER


class Said:
    """A number that a test says."""

    def __init__(self, load_max: int) -> None:
        self.load_max = load_max
        self.was_full = False

    def arrived(self, now: int) -> bool:
        return True

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> bool:
        return True


class Gate:
    """One site's gate."""

    def __init__(self, load_max: int, limits: Limits | None = None) -> None:
        self.said = Said(load_max)
        self.store = MemoryStore()
        self.own = OwnLoad(self.store, self.said)
        self.limits = limits or Limits(load_max="auto", stack_hits=None)
        self._prepared: dict[CallerClass, Any] = {}
        self._callers = 0

    def ask(self, kind: CallerClass = BOT, sleeper: Any = None, *, caller: int | None = None) -> Any:
        if kind not in self._prepared:
            self._prepared[kind] = self.own.prepare(list(handle_request(kind, self.limits)))
        self._callers += 1
        key = self._callers if caller is None else caller
        return self.own.admit(self._prepared[kind], (0, key, key, 0, 0), 1_000_000, 0, sleeper)

    def say(self, load_max: int) -> None:
        self.said.load_max = load_max
        self.own.arrived(0)


@in_virtual_time
async def test_as_many_bots_run_as_the_number_says_and_no_person_is_refused() -> None:
    gate = Gate(2)
    assert isinstance(gate.ask(), Served)
    assert isinstance(gate.ask(PERSON), Served)
    assert isinstance(gate.ask(), Deferred)
    assert isinstance(gate.ask(PERSON), Served)
    assert gate.own.running == 3
    assert gate.own.sleeping == 1


@in_virtual_time
async def test_a_number_that_rises_wakes_the_sleepers_for_whom_there_is_room() -> None:
    gate = Gate(1)
    gate.ask()
    sleepers = [gate.ask().sleeper for _ in range(3)]
    gate.say(3)
    assert [sleeper.woken.done() for sleeper in sleepers] == [True, True, False]
    assert isinstance(gate.ask(), Deferred), "the places of those who were called are theirs"
    assert isinstance(gate.ask(BOT, sleepers[0]), Served)
    assert isinstance(gate.ask(BOT, sleepers[1]), Served)


@in_virtual_time
async def test_a_number_that_falls_ends_no_request_and_lets_no_bot_in_until_enough_have_ended() -> None:
    gate = Gate(3)
    for _ in range(3):
        gate.ask()
    gate.say(1)
    sleeper = gate.ask().sleeper
    gate.own.release()
    gate.own.release()
    assert not sleeper.woken.done()
    gate.own.release()
    assert sleeper.woken.done()


@in_virtual_time
async def test_a_sleeper_that_leaves_gives_its_place_to_the_next() -> None:
    gate = Gate(1)
    gate.ask()
    first, second = gate.ask().sleeper, gate.ask().sleeper
    gate.own.release()
    assert first.woken.done()
    gate.own.leave(first)
    assert second.woken.done()


@in_virtual_time
async def test_no_more_sleep_than_there_are_beds() -> None:
    gate = Gate(1, Limits(load_max="auto", sleeping_max=1))
    gate.ask()
    assert isinstance(gate.ask(), Deferred)
    refused = gate.ask()
    assert type(refused) is Refused
    assert (refused.rule, refused.load) == ("load_defer", 2)


@in_virtual_time
async def test_rules_that_the_page_asks_before_the_load_refuse_first() -> None:
    gate = Gate(1, Limits(load_max="auto"))
    assert isinstance(gate.ask(CRAWLER, caller=1), Served)
    refused = gate.ask(CRAWLER, caller=1)
    assert type(refused) is Refused
    assert (refused.rule, refused.retry_after) == ("lone_crawler", 30_000_000)


@in_virtual_time
async def test_who_finds_no_room_holds_no_hit() -> None:
    gate = Gate(1, Limits(load_max="auto", stack_hits=1))
    gate.ask(caller=1)
    sleeper = gate.ask(caller=2).sleeper
    gate.own.release()
    assert isinstance(gate.ask(BOT, sleeper, caller=2), Served)
    assert gate.ask(caller=2).rule == "load_defer"


@in_virtual_time
async def test_a_site_that_closes_lets_nobody_sleep() -> None:
    gate = Gate(1)
    gate.ask()
    sleeper = gate.ask().sleeper
    gate.own.close()
    assert sleeper.woken.done()
    assert type(gate.ask(BOT, sleeper)) is Refused
    assert type(gate.ask()) is Refused
    assert gate.own.sleeping == 0


@in_virtual_time
async def test_strangers_have_what_is_not_kept_for_acquaintances() -> None:
    gate = Gate(3, Limits(load_max="auto", stack_hits=None, acquaintance_visits=1))
    assert [type(gate.ask()) for _ in range(3)] == [Served, Served, Deferred]


@in_virtual_time
async def test_a_networks_share_counts_while_half_of_the_number_runs() -> None:
    gate = Gate(4, Limits(load_max="auto", stack_hits=None, share_hits=1))
    assert [type(gate.ask()) for _ in range(3)] == [Served, Served, Served]
    assert gate.ask().rule == "share"
    gate.say(8)
    assert isinstance(gate.ask(), Served)


@in_virtual_time
async def test_the_limit_is_told_that_somebody_found_no_room() -> None:
    gate = Gate(1)
    gate.ask()
    assert not gate.said.was_full
    gate.ask()
    assert gate.said.was_full


@in_virtual_time
async def test_rules_without_a_part_are_the_stores_own() -> None:
    gate = Gate(1)
    fixed = gate.own.prepare([LoadRule("load_defer", at_most=2, sleeping_max=1)])
    assert [type(gate.own.admit(fixed, (0, 0, 0), 0, 0)) for _ in range(3)] == [Served, Served, Deferred]
    assert gate.store.sleeping == 1


@pytest.mark.parametrize(("number", "parts"), [(1, [1, 1, 1]), (2, [2, 2, 1]), (3, [3, 2, 2]), (15, [15, 10, 8])])
def test_a_part_of_a_number_is_never_nothing(number: int, parts: list[int]) -> None:
    assert [part.of(number) for part in Part] == parts
