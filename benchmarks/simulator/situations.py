"""A site that hides its limit, who asks it, and what it would have given to somebody who knew.

`FOURTEEN` are the situations with a goal each; `others()` are more than sixty, of other sizes, half of them for
tuning and half for the report.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import (
    NETWORK,
    SERVICE,
    BucketHost,
    SimulatedHost,
    Steps,
    WindowHost,
    WorkerHost,
)

SiteMaker = Callable[[Clockwork, Random], SimulatedHost]


@dataclass(frozen=True)
class Situation:
    name: str
    site: SiteMaker
    would_give: Callable[[float], float]  # requests until then; a bucket's first burst comes on top
    rate: Steps  # what one who knew would send
    seconds: float = 300.0
    in_flight: int = 1 << 30  # … and how many at once
    starts: tuple[float, ...] = (0.0,)  # of each client
    step_at: float | None = None  # settling is counted from here
    bursts: tuple[float, int] | None = None  # (every so many seconds, so many requests)
    burst: float = 0.0  # tokens a rested bucket holds
    outage: tuple[float, float] | None = None
    fair_from: float = 0.0  # Jain's index counts what was served after this
    goal: str = ""
    note: str = field(default="", compare=False)


def bucket(
    name: str,
    rate: float | tuple[tuple[float, float], ...],
    burst: float,
    *,
    status: int = 429,
    tells: bool = True,
    shut_out: float = 0.0,
    outage: tuple[float, float] | None = None,
    seconds: float = 300.0,
    starts: tuple[float, ...] = (0.0,),
    service: float = SERVICE,
    goal: str = "",
    bursts: tuple[float, int] | None = None,
    step_at: float | None = None,
    fair_from: float = 0.0,
) -> Situation:
    steps = Steps(rate) if isinstance(rate, int | float) else Steps(*rate)
    gone = steps.at(outage[0]) * (outage[1] - outage[0]) if outage else 0.0
    return Situation(
        name,
        lambda clockwork, random: BucketHost(
            clockwork,
            random,
            steps,
            burst,
            status=status,
            tells=tells,
            shut_out=shut_out,
            outages=(outage,) if outage else (),
            service=service,
        ),
        lambda until: steps.sum(until) - gone,
        steps,
        seconds,
        starts=starts,
        step_at=step_at,
        bursts=bursts,
        burst=burst,
        outage=outage,
        fair_from=fair_from,
        goal=goal,
    )


def window(
    name: str,
    quota: int,
    length: float,
    *,
    fields: bool = False,
    tells: bool = True,
    seconds: float = 300.0,
    starts: tuple[float, ...] = (0.0,),
    goal: str = "",
) -> Situation:
    return Situation(
        name,
        lambda clockwork, random: WindowHost(clockwork, random, quota, length, fields=fields, tells=tells),
        lambda until: quota * until / length,
        Steps(quota / length),
        seconds,
        starts=starts,
        goal=goal,
    )


def workers(
    name: str, count: int, queue: int, *, service: float = SERVICE, starts: tuple[float, ...] = (0.0,), goal: str = ""
) -> Situation:
    """With a queue what it gives is what its workers can do, without one what so many in flight can get."""
    turn = service if queue else service + 2 * NETWORK
    return Situation(
        name,
        lambda clockwork, random: WorkerHost(clockwork, random, count, queue, service=service),
        lambda until: count * until / turn,
        Steps(1e6),
        in_flight=count if not queue else round(count * (1 + 2 * NETWORK / service) + 0.5),
        starts=starts,
        goal=goal,
    )


FOURTEEN = [
    bucket("8/s, 429 told", 8, 8, goal="98.5 / 0.6"),
    bucket("8/s, bare 503", 8, 8, status=503, tells=False, goal="98.5 / 0.6"),
    window("480 a minute", 480, 60, goal="99 / 0.25"),
    window("480 a minute, fields", 480, 60, fields=True, goal="99.5 / 0"),
    bucket("shut out 10 s", 8, 8, tells=False, shut_out=10, goal="85 / 0.5"),
    bucket("100/s", 100, 100, step_at=0.0, goal="97 / 0.3, there ≤ 15 s"),
    bucket("0.5/s", 0.5, 1, goal="95 / 1.5"),
    bucket("8→2/s", ((0.0, 8.0), (150.0, 2.0)), 8, step_at=150.0, goal="≤ 5 s, – / 2"),
    bucket("2→8/s", ((0.0, 2.0), (150.0, 8.0)), 8, step_at=150.0, goal="≤ 30 s, 93 / 1"),
    workers("knee: 4 and a queue", 4, 100, goal="98 at ≤ 1.35×"),
    workers("slots: 8", 8, 0, goal="97 / 0.3"),
    bucket("bursts of 100", 8, 8, bursts=(30.0, 100), goal="≤ 1.08×, – / 0.5"),
    bucket("six clients", 24, 24, starts=(0.0,) * 3 + (60.0,) * 3, fair_from=100.0, goal="98 / 1.5, Jain .97"),
    bucket("outage 60 s", 8, 8, outage=(120.0, 180.0), goal="≤ 0.2/s, back ≤ 3 s"),
]


def shifted(situation: Situation, seconds: float) -> Situation:
    """Its outage so much later: how soon one is back must not hang on the phase of one's scouts."""
    if situation.outage is None:
        return situation
    start, end = situation.outage
    rate = situation.rate.at(0.0)
    return replace(
        bucket(
            situation.name,
            rate,
            situation.burst,
            outage=(start + seconds, end + seconds),
            seconds=situation.seconds,
            goal=situation.goal,
        )
    )


def others() -> list[Situation]:
    """Of other sizes. Slow hosts run for as long as 600 requests take: one refusal of 60 would be 1.7 %."""
    found: list[Situation] = []

    def long_enough(rate: float) -> float:
        return max(300.0, 600.0 / rate)

    for rate in (0.2, 0.3, 0.7, 1.3, 2.5, 5, 13, 23, 60, 150, 300):
        # A bucket of one token at 60/s refuses for the network's jitter alone: nobody could keep to it.
        smallest = 1.0 if rate <= 5 else max(5.0, rate / 10)
        for burst in sorted({max(smallest, round(rate * seconds)) for seconds in (0.0, 0.3, 1.0, 2.0)}):
            tells = (len(found) % 3) != 2
            found.append(
                bucket(
                    f"{rate:g}/s, burst {burst:g}{'' if tells else ', bare'}",
                    rate,
                    burst,
                    tells=tells,
                    status=429 if tells else 503,
                    seconds=long_enough(rate),
                )
            )
    for quota, length in ((60, 60), (100, 10), (600, 30), (3000, 60), (900, 300), (20, 1), (30, 5)):
        found.append(window(f"{quota} in {length} s", quota, length, seconds=max(300.0, 3.0 * length)))
    for rate, burst, seconds in ((8, 8, 4), (3, 3, 10), (20, 20, 20), (8, 16, 30), (10, 10, 60), (2, 4, 10)):
        found.append(bucket(f"{rate}/s, shut out {seconds} s", rate, burst, tells=False, shut_out=seconds))
    found.append(bucket("8/s, shut out 30 s, told", 8, 8, shut_out=30))
    for count, queue, service in ((1, 50, 0.1), (2, 50, 0.3), (8, 100, 0.08), (16, 200, 0.2), (30, 300, 0.1)):
        found.append(workers(f"knee: {count} of {service:g} s", count, queue, service=service))
    for count, service in ((2, 0.2), (4, 0.08), (12, 0.1), (20, 0.2), (40, 0.15)):
        found.append(workers(f"slots: {count} of {service:g} s", count, 0, service=service))
    for before, after in (
        (10, 7.7),
        (20, 5),
        (30, 2),
        (12, 4),
        (2, 2.6),
        (5, 20),
        (2, 30),
        (4, 12),
        (50, 20),
        (20, 50),
    ):
        steps = ((0.0, float(before)), (150.0, float(after)))
        found.append(bucket(f"{before:g}→{after:g}/s", steps, max(before, after), step_at=150.0))
    for count, rate in ((2, 8), (3, 30), (4, 6), (5, 50), (8, 40), (10, 100)):
        found.append(bucket(f"{count} clients of {rate}/s", rate, rate, starts=(0.0,) * count, fair_from=60.0))
    for start, seconds in ((100.0, 20.0), (60.0, 120.0), (150.0, 5.0)):
        found.append(bucket(f"out for {seconds:g} s", 8, 8, outage=(start, start + seconds)))
    return found


def tuning() -> list[Situation]:
    return others()[0::2]


def held_out() -> list[Situation]:
    return others()[1::2]
