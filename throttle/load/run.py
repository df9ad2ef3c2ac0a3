"""One run: a mix, a site's places and a wire to it; what came of it is in the report."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from random import Random
from typing import Any, TypeVar

from throttle.client.host import Host
from throttle.client.pace.seeking import SeekingPace
from throttle.load.clockwork import DRAIN_SECONDS, TIMEOUT_SECONDS, Clockwork
from throttle.load.crawls import Crawl, greedy_crawl, polite_client, polite_crawl
from throttle.load.crowd import FILES, Caller, callers, plan
from throttle.load.mix import GREEDY, PEOPLE, POLITE, Group, Mix
from throttle.load.places import Places
from throttle.load.report import Report
from throttle.load.wire import Wire

T = TypeVar("T")


def report_for(mix: Mix) -> Report:
    """An empty report with a row for each class."""
    kinds: list[str] = []
    for group in mix.groups:
        kinds += [group.name] if group.kind != PEOPLE or FILES in kinds else [group.name, FILES]
    return Report(kinds)


async def run(
    mix: Mix,
    places: Places,
    wire: Wire,
    report: Report,
    *,
    seconds: float,
    seed: int,
    drain: float = DRAIN_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
) -> None:
    """The traffic of a mix for so long; returns when it is answered, at the latest `drain` later."""
    clockwork = Clockwork(wire, report, timeout=timeout, clock=time.monotonic)
    try:
        crawls = crawls_of(mix, places, seed, time.monotonic)
        await clockwork.run(plan(mix, places, seconds, seed), crawls, seconds=seconds, drain=drain)
    finally:
        wire.close()


def crawls_of(mix: Mix, places: Places, seed: int, clock: Callable[[], float]) -> Iterator[tuple[float, Caller, Crawl]]:
    """The crawlers whose next request depends on the last answer."""
    for group in mix.groups:
        if group.kind not in (GREEDY, POLITE):
            continue
        members = callers(mix, group)
        paths = tuple(path for kind in dict.fromkeys(group.paths) for path in places[kind])
        for number in range(group.connections if group.kind == GREEDY else group.count):
            caller = members[number % len(members)]
            random = Random(f"{seed}/{group.name}/{number}")
            yield group.begins_at, caller, _crawl(group, caller, random, paths, clock)


def _crawl(group: Group, caller: Caller, random: Random, paths: tuple[str, ...], clock: Callable[[], float]) -> Crawl:
    if group.kind == GREEDY:
        return greedy_crawl(random, paths)
    host = Host(caller.address, SeekingPace(random, in_flight_max=group.connections), clock(), random)
    if group.paths == ("api",):
        return polite_client(host, random, paths, clock, connections=group.connections)
    return polite_crawl(host, _shuffled(random, paths), clock, connections=group.connections)


def _shuffled(random: Random, paths: Iterable[str]) -> list[str]:
    order = list(paths)
    random.shuffle(order)
    return order


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; on uvloop where it is installed, which halves what a request costs."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
