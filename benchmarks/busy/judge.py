"""The best fixed limit in hindsight, and whether a limit that was found comes near it."""

from typing import NamedTuple

from benchmarks.busy.run import MakeFinder, alone, play
from benchmarks.busy.site import Fixed, Outcome
from benchmarks.busy.situations import Situation

NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 128, 160, 256)
WITHIN = 0.1
"""of the best fixed limit"""
HINDERED = 0.005
"""of the machines' requests, where there is room for all"""


class Reference(NamedTuple):
    """The fixed limit that gives machines most, of those that keep the people's bar."""

    load_max: int
    ratio: float
    """people's p95 against theirs alone"""
    goodput: float
    """machines' requests served a second"""
    alone: float
    """people's p95 alone"""
    bar: float
    """the situation's; or, where no fixed limit keeps it, what the best of them reaches"""


class Score(NamedTuple):
    """What one limit did in one situation."""

    ratio: float
    goodput: float
    """as a part of the reference's"""
    hindered: float
    """machines' requests that slept or were refused, as a part of all"""
    passes: bool
    numbers: tuple[int, int, int]
    """a tenth of the time it was at most the first, half of it the second, nine tenths the third"""


def reference(situation: Situation, seed: int) -> Reference:
    """Found by search; where there is room for all, no limit is the best."""
    base = alone(situation, seed)
    if situation.is_calm and not situation.people_win:
        outcome = play(situation, lambda _situation, _random: Fixed(10**9), seed)
        return Reference(0, outcome.p95 / base, goodput(situation, outcome), base, situation.bar)
    machine = situation.machine
    about = machine.cores + machine.database_places + machine.threads
    least, most = about / 4, 3 * (about + (10 if machine.has_interpreter_lock else 0)) + 2
    tried: list[Reference] = []
    too_high = 0
    for number in NUMBERS:
        if number < least:
            continue
        if number > most or too_high == 2:
            break
        outcome = play(situation, lambda _situation, _random, number=number: Fixed(number), seed)  # type: ignore[misc]
        ratio = outcome.p95 / base
        too_high += ratio > 1.3 * situation.bar
        tried.append(Reference(number, ratio, goodput(situation, outcome), base, situation.bar))
    keeping = [one for one in tried if one.ratio <= situation.bar]
    if keeping:
        return max(keeping, key=lambda one: one.goodput)
    best = min(tried, key=lambda one: one.ratio)
    return best._replace(bar=best.ratio)


def goodput(situation: Situation, outcome: Outcome) -> float:
    return outcome.machines_served / situation.lasts


def score(
    situation: Situation, make: MakeFinder, best: Reference, seed: int, *, lets_people_first: bool = True
) -> Score:
    outcome = play(situation, make, seed, lets_people_first=lets_people_first)
    ratio = outcome.p95 / best.alone
    part = goodput(situation, outcome) / best.goodput if best.goodput else 1.0
    hindered = (outcome.slept + outcome.refused) / max(outcome.machines, 1)
    keeps_bars = ratio <= best.bar * (1 + WITHIN) and part >= 1 - WITHIN
    passes = hindered <= HINDERED if situation.is_calm and not situation.people_win else keeps_bars
    ordered = sorted(outcome.numbers)
    numbers = tuple(ordered[int(part * (len(ordered) - 1))] for part in (0.1, 0.5, 0.9))
    return Score(ratio, part, hindered, passes, numbers)  # type: ignore[arg-type]
