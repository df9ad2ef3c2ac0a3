"""One run of a situation: the same arrivals and costs for every limit, by the seed."""

from collections.abc import Callable
from math import inf
from random import Random

from benchmarks.busy.site import Finder, Fixed, Outcome, Site
from benchmarks.busy.situations import Situation
from benchmarks.simulator.clockwork import Clockwork

MakeFinder = Callable[[Situation, Random], Finder]


def play(
    situation: Situation, make: MakeFinder, seed: int, *, machines_come: bool = True, lets_people_first: bool = True
) -> Outcome:
    """What people and machines got. `lets_people_first`: in the event loop, as `loop_turns.py` does, and
    in the threads, as `worker_threads.py`."""
    clockwork = Clockwork()
    finder = make(situation, Random(f"finder {seed}"))
    site = Site(
        clockwork, situation.machine, situation.pages, finder, Random(f"costs {seed}"),
        is_labelled=situation.is_labelled, lets_people_first=lets_people_first,
    )  # fmt: skip
    for event in situation.events:
        clockwork.at(event.at, event.happens, site)
    share = 0.1 if situation.is_calm else situation.people  # of few requests, since their p95 needs many
    _arrivals(clockwork, situation, share, Random(f"people {seed}"), lambda: site.arrive(is_person=True))
    if machines_come:
        _arrivals(clockwork, situation, 1 - share, Random(f"machines {seed}"), lambda: site.arrive(is_person=False))
    clockwork.run(situation.settle)
    site.measures = True
    end = situation.settle + situation.lasts
    while clockwork.now < end:
        clockwork.run(min(clockwork.now + 1.0, end))
        site.outcome.numbers.append(finder.load_max)
    return site.outcome


def alone(situation: Situation, seed: int) -> float:
    """The p95 of the same people without machines."""
    return play(situation, lambda _situation, _random: Fixed(10**9), seed, machines_come=False).p95


def _arrivals(
    clockwork: Clockwork, situation: Situation, share: float, random: Random, arrive: Callable[[], None]
) -> None:
    """Poisson arrivals, thinned where the rate changes."""
    most = max(situation.rate(t / 4) for t in range(int(4 * (situation.settle + situation.lasts)) + 1)) * share

    def next_one() -> None:
        rate = situation.rate(clockwork.now) * share
        if rate >= most or random.random() * most < rate:
            arrive()
        clockwork.after(random.expovariate(most) if most else inf, next_one)

    clockwork.after(random.expovariate(most), next_one)
