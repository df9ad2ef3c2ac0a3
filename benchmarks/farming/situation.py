"""The situations of the simulation, in a time that a person waits for, with the same rates."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.simulator.hosts import SimulatedHost
from benchmarks.simulator.situations import FOURTEEN, Situation, bucket, shifted


def site_of(clockwork: Any, random: Random, *, name: str, seconds: float, shift: float = 0.0) -> SimulatedHost:
    return shortened(name, seconds, shift).site(clockwork, random)


def shortened(name: str, seconds: float, shift: float = 0.0) -> Situation:
    """What happens at some time in it happens as much sooner; `shift` is of an outage, seconds later."""
    situation = next(one for one in FOURTEEN if one.name == name)
    pace: Callable[[float], float] = lambda time: time * seconds / situation.seconds  # noqa: E731
    if situation.step_at or situation.outage or any(situation.starts):
        outage = situation.outage
        return bucket(
            name,
            tuple((pace(time), rate) for time, rate in zip(situation.rate.times, situation.rate.values, strict=True)),
            situation.burst,
            outage=(pace(outage[0]) + shift, pace(outage[1]) + shift) if outage else None,
            seconds=seconds,
            starts=tuple(map(pace, situation.starts)),
            step_at=pace(situation.step_at) if situation.step_at is not None else None,
            fair_from=pace(situation.fair_from),
        )
    return replace(shifted(situation, shift), seconds=seconds)
