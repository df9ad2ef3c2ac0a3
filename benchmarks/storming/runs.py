"""One run: a subject before a site, a crowd at it, what people and machines got."""

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from storming.sites import PLACES, rounds_per_second
from throttle.cli.crowd_run import since
from throttle.cli.demo_site import PAPERS_MAP, running_site
from throttle.load.agents import ACCEPT_OF_PEOPLE, BROWSERS
from throttle.load.crowd import FILES, Caller
from throttle.load.mix import PEOPLE, ROBOTS, Group, Mix
from throttle.load.places import Places, find_places
from throttle.load.report import SERVED, Report, percentile
from throttle.load.run import report_for, run, run_fast
from throttle.load.wire import LOOPBACK, Wire

HERE = Path(__file__).resolve().parents[1]
PEOPLE_SHARE = 0.02
ADDRESSES = 2000
THINK_SECONDS = 6.0
TIMEOUT_SECONDS = 10.0
"""after which a caller gives up; who is not served counts as having waited so long"""
ONSET_SECONDS = 3.0
"""told apart"""
DEAR_SHARE = 10
"""of the machines' requests, one in so many is for a dear page, where a site has both"""


class Subject(NamedTuple):
    """What stands before the site."""

    name: str
    kind: str
    limits: str = ""
    """of ours, in TOML"""


BARE = Subject("bare", "bare")
PEOPLE_ONLY = Subject("nobody but people", "people")


def ours(load_max: int | str, preset: str = "connotea") -> Subject:
    told = f'"{load_max}"' if isinstance(load_max, str) else load_max
    return Subject(f"ours, {load_max}", "ours", f'preset = "{preset}"\nload_max = {told}')


class Result(NamedTuple):
    """Of one run; seconds, shares and requests a second, after the onset where nothing else is said."""

    success: float
    """of people: served by offered, from the start"""
    late_success: float
    """the same, after the onset"""
    p95: float
    """of people, who was not served counting as `TIMEOUT_SECONDS`"""
    onset_p95: float
    goodput: float
    """machines' requests answered, a second, as long as the crowd sends"""
    crowd_cpu: float
    """part of its core that the crowd used; what it did after the last request is counted in"""
    late: float
    """seconds by which the crowd itself was late, at p99"""
    people: int
    """those on whom the p95 rests"""
    counts_left: tuple[int, int]
    """running and sleeping when all was over, as the site tells"""


_shares = False


def share_cores() -> None:
    """From now on site and crowd may use all cores."""
    global _shares
    _shares = True
    cores.cache_clear()


@cache
def cores() -> tuple[set[int], set[int]]:
    """Those of the site and those of the crowd: apart, where there are two; nothing where they are shared."""
    if _shares or not hasattr(os, "sched_getaffinity"):
        return set(), set()
    all_of_them = sorted(os.sched_getaffinity(0))
    return (set(all_of_them[:1]), set(all_of_them[1:])) if len(all_of_them) > 1 else (set(), set())


def crowd(
    rate: float,
    seconds: float,
    *,
    machines: bool = True,
    site: str = "cheap",
    disguised: float = 0.0,
    spread: tuple[int, int] = (ADDRESSES, ADDRESSES // 10),
) -> Mix:
    """`rate` requests a second: people 2 % of them, the others crawlers and bots, half and half, in 2,000 addresses.

    Of the machines' requests, the part `disguised` comes with the agents of browsers, from so many addresses and
    networks as `spread` says.
    """
    groups = [Group("people", PEOPLE, count=max(1, round(PEOPLE_SHARE * rate * THINK_SECONDS)))]
    paths = paths_of(site)
    machines_rate = (1 - PEOPLE_SHARE) * rate if machines else 0.0
    for name in ("crawlers", "bots"):
        half = (1 - disguised) * machines_rate / 2
        if half:
            groups.append(Group(name, ROBOTS, rate=half, addresses=ADDRESSES // 2, agents=(name,), paths=paths))
    if disguised * machines_rate:
        addresses, networks = spread
        hidden = Group("disguised", ROBOTS, rate=disguised * machines_rate, addresses=addresses, networks=networks)
        groups.append(replace(hidden, agents=("browsers",), paths=paths))
    return Mix("", tuple(groups), seconds)


def paths_of(site: str) -> tuple[str, ...]:
    """What machines draw from: where a site has both, one page in ten is dear."""
    return ("pages",) * (DEAR_SHARE - 1) + ("dear",) if site in ("mixed", "demo") else ("pages",)


def environment_of(site: str, subject: Subject) -> dict[str, str]:
    """What the site's process is told; see `storming/sites.py`."""
    return {
        "PYTHONPATH": os.pathsep.join([str(HERE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
        "STORM_SITE": site,
        "STORM_SUBJECT": subject.kind,
        "STORM_LIMITS": subject.limits,
        "STORM_CORES": ",".join(map(str, cores()[0])),
        "STORM_SPEED": str(rounds_per_second()),
    }


@contextlib.contextmanager
def served(site: str, subject: Subject, data: Path) -> Iterator[tuple[Wire, Places, list[object]]]:
    """The site behind the subject, warm; a wire to it, its places, and what it tells of itself."""
    guide = Caller("guide", LOOPBACK, BROWSERS[0], ACCEPT_OF_PEOPLE)
    with running_site(app="storming.sites:app", data=data, environment=environment_of(site, subject)) as running:
        wire = Wire(running.port)

        async def prepared() -> Places:
            warm = Wire(running.port)
            places = await find_places(PAPERS_MAP, lambda path: warm(guide, path)) if site == "demo" else PLACES[site]
            for path in places["pages"][:4]:
                await warm(guide, path)
            warm.close()
            return places

        yield wire, run_fast(prepared()), running.counts  # type: ignore[misc]


def measure(site: str, subject: Subject, mix: Mix, data: Path, seed: int, *, onset: float = ONSET_SECONDS) -> Result:
    """One run of the crowd; what comes in the first `onset` seconds is told apart."""
    report = report_for(mix)
    with served(site, subject, data) as (wire, places, counts):
        gc.collect()
        gc.freeze()
        began, cpu = time.monotonic(), time.process_time()  # nearly all of it is used while requests are sent
        work = run(
            mix, places, wire, report, seconds=mix.seconds, seed=seed, drain=TIMEOUT_SECONDS, timeout=TIMEOUT_SECONDS
        )
        run_fast(work)
        used = (time.process_time() - cpu) / mix.seconds
        time.sleep(0.6)  # two tellings of the site's counts
        left = since(counts, began)[-1] if counts else None  # type: ignore[arg-type]
        gc.unfreeze()
    return result_of(report, mix, used, (left.load, left.sleeping) if left else (0, 0), onset)


def result_of(
    report: Report, mix: Mix, crowd_cpu: float, left: tuple[int, int], onset: float = ONSET_SECONDS
) -> Result:
    people = report.tallies["people"]
    seconds = mix.seconds
    onset = min(onset, seconds / 2)

    def waited(start: float, end: float) -> list[float]:
        served = people.latencies_between(start, end)
        unserved = [TIMEOUT_SECONDS for one in people.samples() if one.outcome != SERVED and start <= one.at < end]
        return served + unserved + [TIMEOUT_SECONDS] * (people.open if end >= seconds else 0)

    late = waited(onset, seconds)
    machines = [tally for name, tally in report.tallies.items() if name not in ("people", FILES)]
    # Those answered while people come: what is left over of an overfull site is worked off when nobody waits any more.
    answered = (one.at + one.latency for tally in machines for one in tally.samples() if one.outcome == SERVED)
    in_time = sum(onset <= at < seconds for at in answered)
    return Result(
        success=people.served / max(1, people.offered),
        late_success=len(people.latencies_between(onset, seconds)) / max(1, len(late)),
        p95=percentile(late, 0.95) or 0.0,
        onset_p95=percentile(waited(0.0, onset), 0.95) or 0.0,
        goodput=in_time / (seconds - onset),
        crowd_cpu=crowd_cpu,
        late=percentile(report.late, 0.99) or 0.0,
        people=len(late),
        counts_left=left,
    )


def capacity(site: str, data: Path, seconds: float = 4.0) -> float:
    """Requests a second that the bare site serves when eight callers wait for each other's answers."""
    with served(site, BARE, data) as (wire, places, _):
        return run_fast(_closed_loop(wire, places, paths_of(site), seconds))


async def _closed_loop(wire: Wire, places: Places, kinds: tuple[str, ...], seconds: float) -> float:
    random = Random(1)
    answered = 0
    began = time.monotonic()

    async def ask(number: int) -> None:
        nonlocal answered
        caller = Caller("x", f"127.1.0.{1 + number}", BROWSERS[0])
        while time.monotonic() < began + seconds:
            answer = await wire(caller, random.choice(places[random.choice(kinds)]))
            answered += answer.is_served
        wire.close()

    await asyncio.gather(*(ask(number) for number in range(8)))
    return answered / (time.monotonic() - began)
