"""What a caller may set: the same keywords for every adapter. Made into a table of hosts here, in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypedDict, Unpack

from throttle.client.events import Event
from throttle.client.host import Politeness
from throttle.client.host_key import HostKey
from throttle.client.hosts import Hosts
from throttle.client.pace import Pace
from throttle.client.pace.seeking import SeekingPace
from throttle.client.remembered.rate_memory import RateMemory, rate_memory

if TYPE_CHECKING:
    from throttle.client.fleet.redis_fleet import RedisFleet


@dataclass(frozen=True, slots=True)
class Rates:
    """Within what the pace of a host is sought: requests a second, and how many may be open at once."""

    start: float = 2.0
    least: float = 0.01
    most: float = 1000.0
    in_flight: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most:
            raise ValueError(f"rates must be 0 < least <= most, not least={self.least}, most={self.most}")
        if self.start <= 0:
            raise ValueError(f"the rate to start with must be above 0, not {self.start}")
        if self.in_flight < 1:
            raise ValueError(f"at least one request must be allowed at once, not in_flight={self.in_flight}")


class Settings(TypedDict, total=False):
    """Keywords of every adapter, beside `hosts`; all may be left out.

    rates       within what each host's pace is sought
    per_host    other rates, or a pace of its own, by name: `{"api.example.org": Rates(most=5)}`; a name given here
                is a host of its own, the names below it belong to it
    pace        what makes the pace of a host from its rates; the default seeks the limit (`SeekingPace`)
    politeness  longest waits, retries, what is a block (`Politeness`)
    key         which host an authority (`www.example.org:8000`) belongs to; the registrable domain by default
    shared      `"redis://127.0.0.1:6379/0"`: all processes that name the same server spend one budget per host; a
                `RedisFleet` likewise
    memory      where what is learned of hosts survives the process: a path such as `"rates.db"` (SQLite), True for a
                file in the platform's place for a user's data, `"postgresql://..."`, or a `RateMemory`
    hosts_max   so many idle hosts are remembered
    on_event    is called with each `Event`, while the host is locked: it must not ask that host
    random      for jitter; a seeded one makes runs repeatable
    """

    rates: Rates
    per_host: Mapping[str, "Rates | Callable[[], Pace]"]
    pace: Callable[[Rates], Pace]
    politeness: Politeness
    key: Callable[[str], str]
    shared: "str | RedisFleet"
    memory: "str | Path | bool | RateMemory"
    hosts_max: int
    on_event: Callable[[Event], None]
    random: Random


SETTINGS = frozenset(Settings.__annotations__)


def polite_hosts(**settings: Unpack[Settings]) -> Hosts:
    """A table of hosts for several clients to share, in any thread: what one is told, all obey."""
    unknown = settings.keys() - SETTINGS
    if unknown:
        raise TypeError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(sorted(SETTINGS))}")
    random = settings.get("random") or Random()
    seek = settings.get("pace") or partial(_seeking, random)
    per_host = settings.get("per_host") or {}
    shared, memory = _fleet(settings.get("shared")), rate_memory(settings.get("memory"))
    return Hosts(
        partial(seek, settings.get("rates") or Rates()),
        per_host={name: partial(seek, told) if isinstance(told, Rates) else told for name, told in per_host.items()},
        key=settings.get("key") or HostKey(frozenset(per_host)),
        hosts_max=settings.get("hosts_max", 10_000),
        shared=shared,
        memory=memory,
        owned=[
            link
            for told, link in ((settings.get("shared"), shared), (settings.get("memory"), memory))
            if link is not None and link is not told
        ],
        politeness=settings.get("politeness"),
        on_event=settings.get("on_event"),
        random=random,
    )


def _fleet(shared: "str | RedisFleet | None") -> "RedisFleet | None":
    if not isinstance(shared, str):
        return shared
    from throttle.client.fleet.redis_fleet import RedisFleet  # only for those who use it

    return RedisFleet(shared)


def capped(settings: Settings, in_flight: int) -> Settings:
    """No host gets more slots than the adapter has connections for: who has a slot should not wait for one."""

    def cap(rates: Rates) -> Rates:
        return replace(rates, in_flight=min(rates.in_flight, in_flight))

    capped = settings.copy()
    capped["rates"] = cap(settings.get("rates") or Rates())
    capped["per_host"] = {
        name: cap(told) if isinstance(told, Rates) else told for name, told in (settings.get("per_host") or {}).items()
    }
    return capped


def given_or_new(hosts: Hosts | None, settings: Settings) -> Hosts:
    """An adapter's table: the shared one that it was given, or its own."""
    if hosts is None:
        return polite_hosts(**settings)
    if settings:
        raise TypeError(f"{', '.join(sorted(settings))}: set these where the shared table of hosts is made")
    return hosts


def _seeking(random: Random, rates: Rates) -> Pace:
    start = min(max(rates.start, rates.least), rates.most)
    return SeekingPace(random, rate=start, rate_min=rates.least, rate_max=rates.most, in_flight_max=rates.in_flight)
