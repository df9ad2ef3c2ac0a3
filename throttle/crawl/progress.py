"""How far a job is, and when it can be done: at the earliest max(slowest host's URLs ÷ rate, total ÷ throughput)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from throttle.client.circuit_breaker import State
from throttle.client.host import Host
from throttle.crawl.at_most import interval_of


@dataclass(frozen=True, slots=True)
class HostProgress:
    host: Host = field(repr=False)
    name: str
    left: int
    rate: float
    """requests a second it bears, as far as is known: by its pace, and by its slots and latency"""
    in_flight: int
    rest: float
    """seconds for which nothing is sent"""
    drops: int
    answers: int
    interval: float = 0.0
    """seconds between two requests that its robots.txt or the user asks for"""

    @classmethod
    def of(cls, host: Host, left: int, now: float) -> "HostProgress":
        stats = host.stats(now)
        rate = stats.rate if not stats.p50 else min(stats.rate, stats.in_flight_max / stats.p50)
        rest = host.rest_left(now) if stats.resting is not State.CLOSED else 0.0
        answers = sum(stats.statuses.values())
        return cls(host, host.name, left, rate, stats.in_flight, rest, stats.drops, answers, interval_of(host))

    @property
    def seconds(self) -> float:
        return self.rest + (self.left / self.rate if self.rate > 0 else float("inf"))


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    total: int
    seconds: float
    rate: float
    """results a second, of this run"""
    in_flight: int
    eta: float | None
    """seconds; None while nothing is known"""
    held_up_by: str
    """the host that needs longest, if it and not the throughput decides; and what makes it so slow, if it was told"""
    is_reading: bool
    """URLs are still being read"""
    hosts: list[HostProgress] = field(default_factory=list)


def progress(
    hosts: Sequence[HostProgress],
    *,
    done: int,
    total: int,
    done_here: int,
    seconds: float,
    in_flight: int,
    is_reading: bool,
) -> Progress:
    """`hosts` come out with those that need longest first; it is enough to give those."""
    ordered = sorted(hosts, key=lambda host: -host.seconds)
    rate = done_here / seconds if seconds > 0 else 0.0
    by_throughput = (total - done) / rate if rate > 0 else None
    by_host = ordered[0].seconds if ordered else 0.0
    is_held_up = bool(ordered) and (by_throughput is None or by_host > by_throughput)
    eta = by_host if is_held_up else by_throughput
    return Progress(
        done=done,
        total=total,
        seconds=seconds,
        rate=rate,
        in_flight=in_flight,
        eta=eta,
        held_up_by=_who(ordered[0]) if is_held_up else "",
        is_reading=is_reading,
        hosts=ordered,
    )


def _who(host: HostProgress) -> str:
    return f"{host.name}, a request each {host.interval:g} s" if host.interval else host.name
