"""What does a job whose rates nobody knows cost its hosts, and what its time? Simulated, with no network.

    python -m benchmarks.hurry [--seeds 3]

The frontier, the hosts and their paces are the ones that run in production. Each job is run twice: every host's limit
is sought, and only where that shortens the job (throttle/crawl/hurry.py). The lists are those of benchmarks/crawl_job;
the loop is up to 2 ms late. The bound is the URLs of the slowest host ÷ its rate.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from benchmarks.farming.histogram import SERVICE, counts, limited_hosts, with_rates
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import BucketHost, Reply, Steps
from throttle.client.answer import Answer
from throttle.client.host import Host, Place
from throttle.client.pace.seeking import SeekingPace
from throttle.crawl.frontier import Frontier, Turn
from throttle.crawl.holdings import Holding
from throttle.crawl.hurry import EVERY_SECONDS, hold_who_has_time

SLOTS = 64
LATE = 0.002
JOBS = [(75_000, 1_000, 240.0), (3_000, 200, 90.0), (3_000, 200, 30.0)]


@dataclass
class Came:
    """What came of a job: seconds until nine of ten URLs and all were done, and refusals ÷ requests."""

    t90: float
    seconds: float
    refused: float


class Job:
    def __init__(self, urls_of: Sequence[int], rates: Sequence[float], seed: int, *, holds: bool) -> None:
        self.clockwork = Clockwork()
        self.random = Random(seed)
        self.holds = holds
        self.frontier: Frontier[int] = Frontier(self.plan)
        self.sites: dict[Host, BucketHost] = {}
        self.holdings: dict[Host, Holding] = {}
        for number, (count, rate) in enumerate(zip(urls_of, rates, strict=True)):
            host = Host(str(number), SeekingPace(self.random), 0.0, self.random)
            self.sites[host] = BucketHost(self.clockwork, self.random, Steps(rate), max(2.0, rate), service=SERVICE)
            self.holdings[host] = Holding(number, host, count)
            self.frontier.add(host, range(count))
        self.urls = sum(urls_of)
        self.open = self.done = self.refused = 0
        self.t90 = 0.0
        self._is_planned = False

    def run(self) -> Came:
        self.tick()
        self.plan()
        while self.done < self.urls:
            self.clockwork.run(self.clockwork.now + EVERY_SECONDS)
        return Came(self.t90, self.ended, self.refused / (self.refused + self.urls))

    def tick(self) -> None:
        if self.holds:
            hold_who_has_time(self.holdings.values(), self.clockwork.now)
        self.clockwork.after(EVERY_SECONDS, self.tick)

    def plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self.clockwork.after(self.random.uniform(0.0, LATE), self.pump)

    def pump(self) -> None:
        self._is_planned = False
        now = self.clockwork.now
        while self.open < SLOTS and (turn := self.frontier.pop(now)) is not None:
            self.send(turn)
        if self.open < SLOTS and (at := self.frontier.next_time()) is not None:
            self.clockwork.at(at, self.plan)

    def send(self, turn: Turn[int]) -> None:
        place = turn.place
        assert isinstance(place, Place)
        self.open += 1
        self.sites[turn.host].send(0, lambda reply: self.landed(turn, place, reply))

    def landed(self, turn: Turn[int], place: Place, reply: Reply) -> None:
        host, now = turn.host, self.clockwork.now
        host.answered(place, Answer(now, reply.status, reply.retry_after))
        host.release(place)
        self.open -= 1
        if reply.status == 200:
            self.finished(host, now)
        else:
            self.refused += 1
            self.frontier.add_first(host, turn.item)
        self.plan()

    def finished(self, host: Host, now: float) -> None:
        self.done += 1
        self.ended = now
        if self.done == self.urls * 9 // 10:
            self.t90 = now
        self.holdings[host].unfinished -= 1
        if not self.holdings[host].unfinished:
            del self.holdings[host]


def main() -> None:
    parser = argparse.ArgumentParser(description="What does seeking each host's limit cost?")
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, 1 + parser.parse_args().seeds)
    for urls, hosts, seconds in JOBS:
        print(f"{urls:,} URLs over {hosts:,} hosts, the slowest needs {seconds:.0f} s; median of {len(seeds)} seeds")
        for name, holds in (("sought everywhere", False), ("where it helps", True)):
            came = [one(urls, hosts, seconds, seed, holds=holds) for seed in seeds]
            times, t90, refused = ([getattr(each, what) for each in came] for what in ("seconds", "t90", "refused"))
            print(
                f"  {name:18} {median(times) / seconds:.3f} × the bound (most {max(times) / seconds:.3f}),"
                f" 90 % after {median(t90) / seconds:.2f} ×,"
                f" refused {100 * median(refused):.2f} % (most {100 * max(refused):.2f})",
                flush=True,
            )


def one(urls: int, hosts: int, seconds: float, seed: int, *, holds: bool) -> Came:
    random = Random(f"job/{seed}")
    urls_of = counts(urls, hosts, random)
    rates = list(with_rates(limited_hosts(urls_of, seconds, random)).values())
    return Job(urls_of, rates, seed, holds=holds).run()


if __name__ == "__main__":
    main()
