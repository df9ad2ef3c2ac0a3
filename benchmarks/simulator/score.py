"""One run of one situation, and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Protocol

from benchmarks.simulator.clients import Client, FlowClient, Limiter, LimiterClient, Log, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import BucketHost, SimulatedHost, Steps
from benchmarks.simulator.situations import Situation, shifted
from throttle.client.host import Host
from throttle.client.pace import Pace

# A contestant is made for each client: a pace of ours goes under our flow, a limiter of others stands alone.
Contestant = Callable[[Situation, int, Random], Pace | Limiter]


class Logged(Protocol):
    log: Log


@dataclass(frozen=True, slots=True)
class Score:
    goodput: float  # of what the host would have given
    refused: float  # of all requests that landed
    p95: float  # of those served, by the idle host's p95
    jain: float
    settle: float | None  # seconds; None where nothing steps, infinity for never
    burst_time: float | None  # by the ideal
    probes: float | None  # a second, while out
    back: float | None  # seconds after the outage

    def is_kept(self) -> bool:
        """The common line."""
        return self.goodput >= 0.95 and self.refused <= 0.01 and self.p95 <= 2.0 and self.jain >= 0.95


def run(situation: Situation, contestant: Contestant, seed: int, late: Callable[[], float] = float) -> Score:
    """`late` draws by how many seconds a wait of our flow ends later than wished, as in a real event loop."""
    random = Random(f"{situation.name}/{seed}")
    situation = shifted(situation, random.uniform(0.0, 6.0))
    clockwork = Clockwork()
    site = situation.site(clockwork, Random(random.random()))
    clients = [
        _client(situation, contestant, clockwork, site, caller, start, Random(random.random()), late)
        for caller, start in enumerate(situation.starts)
    ]
    clockwork.run(situation.seconds)
    return score(situation, clients)


def _client(
    situation: Situation,
    contestant: Contestant,
    clockwork: Clockwork,
    site: SimulatedHost,
    caller: int,
    start: float,
    random: Random,
    late: Callable[[], float],
) -> Client:
    work = Work(_pieces(situation))
    pace = contestant(situation, caller, random)
    if hasattr(pace, "in_flight_max"):
        host = Host(situation.name, pace, start, random)
        return FlowClient(clockwork, site, host, caller, work, start, late)
    return LimiterClient(clockwork, site, pace, caller, work, start)  # type: ignore[arg-type]


def _pieces(situation: Situation) -> list[tuple[float, int]] | None:
    if situation.bursts is None:
        return None
    every, count = situation.bursts
    return [(turn * every, count) for turn in range(int(situation.seconds / every))]


def score(situation: Situation, clients: Sequence[Logged]) -> Score:
    """Of clients that have logged what they sent, whether in virtual time or in real."""
    events = sorted(event for client in clients for event in _events(client, situation.seconds))
    served = [(sent, landed) for landed, sent, good in events if good]
    wanted = sum(count for _, count in _pieces(situation) or []) or float("inf")
    ideal = min(situation.would_give(situation.seconds), wanted)
    latencies = sorted(landed - sent for sent, landed in served)
    p95 = latencies[int(len(latencies) * 0.95)] if latencies else float("inf")
    return Score(
        goodput=len(served) / ideal,
        refused=1 - len(served) / max(1, len(events)),
        p95=p95 / idle_p95(_service(situation)),
        jain=_jain(situation, clients),
        settle=_settle(situation, events),
        burst_time=_burst_time(situation, served),
        probes=_probes(situation, clients),
        back=_back(situation, served),
    )


def _events(client: Logged, until: float) -> list[tuple[float, float, bool]]:
    log = client.log
    return [
        (landed, sent, good)
        for sent, landed, good in zip(log.sent, log.landed, log.served, strict=True)
        if landed <= until
    ]


def _service(situation: Situation) -> float:
    return situation.site(Clockwork(), Random(0)).service


@lru_cache(maxsize=64)
def idle_p95(service: float) -> float:
    site = BucketHost(Clockwork(), Random(7), Steps(1), 1, service=service)
    drawn = sorted(site.network() + site.service_time() + site.network() for _ in range(20_000))
    return drawn[19_000]


def _jain(situation: Situation, clients: Sequence[Logged]) -> float:
    """(Σx)² ÷ n·Σx² over what each was served."""
    shares = [
        sum(1 for landed, _, good in _events(client, situation.seconds) if good and landed >= situation.fair_from)
        for client in clients
    ]
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def _settle(situation: Situation, events: list[tuple[float, float, bool]]) -> float | None:
    """Until the first 10 s span, counted after the step, with ≥ 90 % of the rate and ≤ 5 % refused."""
    if situation.step_at is None:
        return None
    start = situation.step_at
    rate = situation.rate.at(start)
    served = [landed for landed, _, good in events if good]
    refused = [landed for landed, _, good in events if not good]
    while start + 10 <= situation.seconds:
        good = sum(1 for landed in served if start <= landed < start + 10)
        bad = sum(1 for landed in refused if start <= landed < start + 10)
        if good >= 9 * rate and bad <= 0.05 * (good + bad):
            return start - situation.step_at
        start += 0.5
    return float("inf")


def _burst_time(situation: Situation, served: list[tuple[float, float]]) -> float | None:
    """Mean over bursts of the time from the first wish to the last page, by the ideal."""
    if situation.bursts is None:
        return None
    every, count = situation.bursts
    ideal = (count - situation.burst) / situation.rate.at(0.0)
    landings = sorted(landed for _, landed in served)
    spans = [
        landings[turn * count + count - 1] - turn * every
        for turn in range(int(situation.seconds / every))
        if turn * count + count <= len(landings)
    ]
    return sum(spans) / len(spans) / ideal if spans else float("inf")


def _probes(situation: Situation, clients: Sequence[Logged]) -> float | None:
    if situation.outage is None:
        return None
    start, end = situation.outage
    sent = sum(1 for client in clients for time in client.log.sent if start <= time < end)
    return sent / (end - start)


def _back(situation: Situation, served: list[tuple[float, float]]) -> float | None:
    if situation.outage is None:
        return None
    end = situation.outage[1]
    return min((landed - end for sent, landed in served if sent >= end), default=float("inf"))
