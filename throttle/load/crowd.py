"""Who asks for what when: plans drawn from a seed before anything is sent. No I/O.

What keeps to a plan whatever is answered is here. What waits for an answer before it asks again is in `crawls.py`.
"""

import heapq
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from random import Random
from typing import NamedTuple

from throttle.load.agents import ACCEPT_OF_PEOPLE, ACCEPT_OF_ROBOTS
from throttle.load.mix import PEOPLE, ROBOTS, Group, Mix
from throttle.load.places import Places

FILES = "their files"
"""the class of what people's pages load, in the report"""
THINK_LEAST = 2.0
"""seconds; nobody reads faster, so nobody meets a limit of 10 pages in 15 s"""

_PARTS = re.compile(
    rb'<(?:link|script|img)\b[^>]{0,1000}?\b(?:href|src)="'
    rb'(/(?!/)(?:(?!["?#])[!-~])+\.[A-Za-z0-9]{1,5}(?:\?(?:(?!["#])[!-~])*)?)"'
)


@dataclass(frozen=True, slots=True)
class Caller:
    """One member of the crowd: its class in the report, where it asks from, and what it says it is."""

    kind: str
    address: str
    agent: str
    accept: str = ACCEPT_OF_ROBOTS


class Ask(NamedTuple):
    """One planned request; `at` is seconds from the start of the traffic."""

    at: float
    caller: Caller
    path: str
    loads_files: bool = False
    """the first page of a visit: what it links to is asked for as soon as it has come"""


def plan(mix: Mix, places: Places, seconds: float, seed: int) -> Iterator[Ask]:
    """All that is asked for on a schedule, in order of time. The same seed gives the same plan."""
    parts = []
    for group in mix.groups:
        random = Random(f"{seed}/{group.name}")
        if group.kind == PEOPLE:
            parts += [_visits(random, caller, group, places, seconds) for caller in callers(mix, group)]
        elif group.kind == ROBOTS:
            parts.append(_robots(random, callers(mix, group), group, places, seconds))
    return heapq.merge(*parts, key=attrgetter("at"))


def callers(mix: Mix, group: Group) -> list[Caller]:
    """The group's members, each with its address in 127.0.0.0/8 and its agent."""
    agents = group.spoken
    accept = ACCEPT_OF_PEOPLE if group.kind == PEOPLE else ACCEPT_OF_ROBOTS
    number = 1 + mix.groups.index(group)
    return [
        Caller(group.name, _address(number, seat, group.spread), agents[seat % len(agents)], accept)
        for seat in range(group.seats)
    ]


def _address(number: int, seat: int, networks: int) -> str:
    host, network = divmod(seat, networks)
    return f"127.{number << 4 | network >> 8}.{network & 255}.{1 + host}"


def _visits(random: Random, caller: Caller, group: Group, places: Places, seconds: float) -> Iterator[Ask]:
    """One person's pages: read one, think, read the next."""
    random = Random(random.random())  # each has its own, since their visits are merged
    at = group.begins_at + random.uniform(0, group.think_seconds)
    page = 0
    while at < seconds:
        is_first = page % group.visit_pages == 0
        path = places["pages"][0] if is_first else random.choice(places["pages"])
        yield Ask(at, caller, path, loads_files=is_first)
        page += 1
        at += THINK_LEAST + random.expovariate(1 / (group.think_seconds - THINK_LEAST))


def _robots(random: Random, members: list[Caller], group: Group, places: Places, seconds: float) -> Iterator[Ask]:
    at = group.begins_at + random.expovariate(group.rate)
    while at < seconds:
        yield Ask(at, random.choice(members), random.choice(places[random.choice(group.paths)]))
        at += random.expovariate(group.rate)


def files_of(ask: Ask, page: bytes, at: float) -> Iterator[Ask]:
    """The files that a page asks for, as a browser with an empty cache loads them."""
    caller = replace(ask.caller, kind=FILES)
    for path in dict.fromkeys(_PARTS.findall(page)):
        yield Ask(at, caller, html.unescape(path.decode("ascii")))
