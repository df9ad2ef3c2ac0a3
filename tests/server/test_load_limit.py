"""How many requests a process can run at once, read from those that run."""

from math import exp, log
from random import Random

import pytest

from benchmarks.busy.run import play
from benchmarks.busy.site import Fixed
from benchmarks.busy.situations import MILD_MIX, ONE_COST, burst, one, plain, step
from tests.virtual_clock import in_virtual_time
from throttle.server.load_curve import BLOCK, KINDS, LoadCurve, slowdown
from throttle.server.load_limit import LEAST, MOST, LoadLimit, usable_cores

SECOND = 1_000_000
PAGE = ("page", "bot")


def curve_of(
    knee: float, *, expected: float = 4.0, scatter: float = 0.2, drift: float = 0.0, seed: int = 1
) -> LoadCurve:
    """What is known after 2,000 requests of a site that slows down from `knee` in flight."""
    random, curve = Random(seed), LoadCurve(expected)
    for number in range(2000):
        found = random.randint(1, 16)
        cost = 50_000 * exp(random.gauss(drift * number, scatter))
        curve.add(PAGE, found, log(found), cost * slowdown(found, knee))
    return curve


@pytest.mark.parametrize("knee", [1.5, 4, 10])
@pytest.mark.parametrize("expected", [2.0, 8.0])
def test_the_number_from_which_a_site_slows_down_is_found_wherever_it_was_expected(
    knee: float, expected: float
) -> None:
    assert curve_of(knee, expected=expected).fit(30) == pytest.approx(knee, rel=0.2)


def test_a_site_that_does_not_slow_down_is_taken_to_bear_all_that_it_was_seen_to_bear() -> None:
    assert curve_of(1000).fit(30) > 14


def test_nothing_is_believed_beyond_what_was_seen() -> None:
    assert curve_of(1000).fit(5) < 6


def test_costs_that_drift_are_not_taken_for_the_load() -> None:
    # They double every 350 requests.
    assert curve_of(4, drift=0.002).fit(30) == pytest.approx(4, rel=0.25)


def test_kinds_are_compared_with_themselves_only() -> None:
    random, curve = Random(1), LoadCurve(4)
    for _ in range(2000):
        found = random.randint(1, 16)
        # Dear pages come when much runs, which would look as if the load slowed the site down.
        kind = "dear" if found > 8 else "cheap"
        curve.add((kind, "bot"), found, log(found), 50_000 * (100 if kind == "dear" else 1) * exp(random.gauss(0, 0.2)))
    assert curve.fit(30) > 8


def test_that_a_long_request_meets_more_than_a_short_one_does_not_count_as_load() -> None:
    random, curve = Random(1), LoadCurve(4)
    for _ in range(4000):
        found, cost = random.choice((3, 4)), exp(random.gauss(0, 0.8))
        curve.add(PAGE, found, log(found + min(cost, 2)), 50_000 * cost)
    assert curve.fit(30) > 3.5


def test_kinds_are_bounded_and_beyond_that_only_classes_are_told_apart() -> None:
    curve = LoadCurve(4)
    for number in range(10_000):
        curve.add((number, number % 3), 1, 0.0, 1000)
    assert len(curve._kinds) <= KINDS + 3


def test_what_is_known_does_not_fade_while_each_request_is_alone() -> None:
    curve = curve_of(2, expected=8)
    for _ in range(20_000):
        curve.add(PAGE, 1, 0.0, 50_000)
    assert curve.fit(30) == pytest.approx(2, rel=0.2)


def test_a_site_that_has_changed_is_noticed_after_few_requests() -> None:
    curve = LoadCurve(4)
    for _ in range(2 * BLOCK):
        curve.add(PAGE, 2, log(2), 50_000)
    assert not curve.residual.found
    for _ in range(50):
        curve.add(PAGE, 2, log(2), 200_000)
    assert curve.residual.found > 0


# The number


def limit(cores: int = 4) -> LoadLimit:
    return LoadLimit(cores, Random(1).random)


def serve(machine: LoadLimit, at: int, microseconds: int, *, together: int = 1) -> None:
    """So many requests that begin and end together."""
    began = []
    for _ in range(together):
        machine.arrived(at)
        began.append(machine.began(at))
    for one_of_them in began:
        machine.ended(PAGE, one_of_them, at + microseconds)


def test_it_begins_with_the_processors_and_three_times_as_many_while_nothing_is_known() -> None:
    machine = limit(4)
    assert (machine.found, machine.load_max) == (4, 14)
    assert [limit(cores).load_max for cores in (1, 2)] == [3, 5], "on few, one more weighs more"


def test_a_rush_counts_within_half_a_second() -> None:
    machine = limit(4)
    for number in range(100):
        serve(machine, number * 100_000, 50_000)
    assert (machine.engaged, machine.load_max) == (0, 14)
    for number in range(400):
        machine.arrived(10 * SECOND + number * 1500)
    assert (machine.engaged, machine.load_max) == (1, 4)


def test_a_rush_in_which_somebody_found_no_room_counts_within_a_twentieth_of_a_second() -> None:
    for was_full, load_max in ((False, 14), (True, 4)):
        machine = limit(4)
        for number in range(100):
            serve(machine, number * 100_000, 50_000)
        machine.was_full = was_full
        for number in range(34):
            machine.arrived(10 * SECOND + number * 1500)
        assert machine.load_max == 14
        assert machine.arrived(10 * SECOND + 51_000) is was_full
        assert machine.load_max == load_max


def test_nine_requests_are_no_rush_however_close_together() -> None:
    machine = limit(1)
    for number in range(100):
        serve(machine, number * 400_000, 50_000)
    machine.was_full = True
    machine.arrived(50 * SECOND)  # from here on it is counted
    for number in range(9):
        machine.arrived(50 * SECOND + 50_000 + number)
    assert machine.engaged < 1
    machine.arrived(50 * SECOND + 50_009)
    assert machine.engaged == 1


def test_those_who_still_run_when_a_rush_begins_are_not_compared_with_those_who_come_in_it() -> None:
    machine = limit(4)
    for number in range(100):
        serve(machine, number * 100_000, 50_000)
    longest = [machine.began(10 * SECOND) for _ in range(12)]
    for number in range(400):
        machine.arrived(10 * SECOND + number * 1500)
    assert machine.engaged == 1
    for one_of_them in longest:
        machine.ended(PAGE, one_of_them, 12 * SECOND)
    assert machine.curve._kinds[PAGE].count == 0
    serve(machine, 13 * SECOND, 50_000)
    assert machine.curve._kinds[PAGE].count == 1


def test_there_is_no_reason_to_rise_while_nobody_finds_no_room() -> None:
    machine = limit(1)
    for number in range(500):
        serve(machine, number * 100_000, 50_000, together=number % 8 + 1)
    assert machine.found <= 1
    for number in range(500, 1000):
        machine.was_full = True
        serve(machine, number * 100_000, 50_000, together=number % 8 + 1)
    assert machine.found > 4


def test_of_few_one_more_is_admitted_only_when_it_is_clear() -> None:
    machine = limit(1)
    machine.engaged = 1.0

    def said(found: float) -> int:
        machine._target = found
        machine._say()
        return machine.load_max

    assert [said(found) for found in (1.0, 1.6, 1.74, 1.76, 1.6, 1.51, 1.49, 1.7)] == [1, 1, 1, 2, 2, 2, 1, 1]
    assert [said(found) for found in (2.4, 1.2, 2.55)] == [2, 1, 2], "from 1 to 2 as well"


def test_nothing_moves_while_nothing_happens() -> None:
    machine = limit(4)
    for number in range(100):
        serve(machine, number * 10_000, 50_000)
    before = machine.found
    machine.arrived(10_000 * SECOND)
    serve(machine, 10_001 * SECOND, 50_000)
    assert machine.found == before


@pytest.mark.parametrize("together", [1, 500])
def test_it_stays_within_its_bounds(together: int) -> None:
    machine, random = LoadLimit(10**9, Random(1).random), Random(2)
    assert machine.load_max <= MOST
    for number in range(100):
        machine.was_full = True
        serve(machine, number * SECOND, random.randint(1, 900_000), together=together)
        assert LEAST <= machine.load_max <= MOST


def test_a_clock_that_stands_still_or_steps_back_does_no_harm() -> None:
    machine = limit()
    serve(machine, 1000, 0, together=50)
    serve(machine, 500, 10)
    serve(machine, 0, 5)
    assert machine.running == 0
    assert LEAST <= machine.load_max <= MOST


def test_at_least_one_processor_may_be_used() -> None:
    assert usable_cores() >= 1


# On a simulated site, in virtual time; benchmarks/load_limit.py has more of them


@in_virtual_time
async def test_in_a_storm_people_keep_their_latency_and_machines_what_is_left() -> None:
    storm = plain("storm", 4, one(0.04), 10, ONE_COST, settle=20, lasts=40)
    found = play(storm, lambda _, random: LoadLimit(4, random.random), 1)
    best, alone = play(storm, lambda *_: Fixed(4), 1), play(storm, lambda *_: Fixed(0), 1)
    assert found.p95 < 1.6 * alone.p95
    assert found.machines_served > 0.9 * best.machines_served
    assert play(storm, lambda *_: Fixed(15), 1).p95 > 3 * alone.p95, "a number of another site is no answer"


@in_virtual_time
async def test_a_wrong_beginning_is_corrected() -> None:
    storm = plain("storm", 4, one(0.04), 10, ONE_COST, settle=60, lasts=20)
    for cores in (1, 16):
        found = play(storm, lambda _, random, cores=cores: LoadLimit(cores, random.random), 1)  # type: ignore[misc]
        assert 3 <= sum(found.numbers) / len(found.numbers) <= 7, cores


@in_virtual_time
async def test_processors_that_are_lost_are_noticed() -> None:
    storm = plain("storm", 8, one(0.05), 4, ONE_COST, settle=60, lasts=20, events=[step(30, cores=2)])
    found = play(storm, lambda _, random: LoadLimit(8, random.random), 1)
    assert max(found.numbers) <= 4


@in_virtual_time
async def test_at_half_load_nobody_is_hindered() -> None:
    calm = plain("calm", 4, MILD_MIX, 0.5, ONE_COST, settle=10, lasts=60)
    found = play(calm, lambda _, random: LoadLimit(4, random.random), 1)
    assert found.machines > 1000
    assert found.slept + found.refused <= 0.005 * found.machines


@in_virtual_time
async def test_after_a_storm_there_is_room_for_all_again() -> None:
    storm = plain("storm", 4, one(0.04), lambda now: 10 if now < 30 else 0.3, ONE_COST, settle=60, lasts=20)
    found = play(storm, lambda _, random: LoadLimit(4, random.random), 1)
    assert found.slept + found.refused == 0
    assert burst(30, 10)(29) == 0.3
