"""Several processes that share a pace through a real ledger, in virtual time: only the network between is imagined."""

from collections.abc import Callable
from random import Random
from typing import Any

import redis

from benchmarks.simulator.clients import FlowClient, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import SimulatedHost
from throttle.client.fleet.call import MICRO, Call, news_from, reply_from
from throttle.client.fleet.redis_script import ledger_script
from throttle.client.fleet.shared_pace import SharedPace
from throttle.client.host import Host
from throttle.client.pace import Pace

DELAY = 0.0004  # seconds to the ledger, and back
START = 1_000_000_000 * MICRO  # the ledger's clock at virtual time 0


class Ledger:
    """A real server that counts by virtual time. `is_up` False: its calls fail after `TIME_BOX`."""

    TIME_BOX = 0.25

    def __init__(self, clockwork: Clockwork, server: "redis.Redis", prefix: str, delay: float = DELAY) -> None:
        self.clockwork = clockwork
        self.delay = delay
        self.is_up = True
        self.calls = 0
        self.workers: list[SharedPace] = []
        self._ask: Callable[[Call, int], Any] = ledger_script(server, prefix)

    def post(self, pace: SharedPace, call: Call) -> None:
        self.calls += 1
        self.clockwork.after(self.delay, self._arrive, pace, call)

    def look_at(self, pace: SharedPace, at: float) -> None:
        self.clockwork.at(at, lambda: pace.timer(self.clockwork.now) if pace in self.workers else None)

    def _arrive(self, pace: SharedPace, call: Call) -> None:
        if not self.is_up:
            self.clockwork.after(self.TIME_BOX, self._fail, pace)
            return
        reply = reply_from(self._ask(call, START + round(self.clockwork.now * MICRO)))
        self.clockwork.after(self.delay, self._answer, pace, reply)
        if reply.news:
            self.clockwork.after(self.delay, self._tell, reply.news)

    def _answer(self, pace: SharedPace, reply: Any) -> None:
        if pace in self.workers:
            pace.answered(reply, self.clockwork.now)

    def _tell(self, news: str) -> None:
        for pace in self.workers:
            pace.heard(news_from(news), self.clockwork.now)

    def _fail(self, pace: SharedPace) -> None:
        pace.failed(self.clockwork.now)

    def go(self) -> None:
        """Away, for all."""
        self.is_up = False

    def come_back(self) -> None:
        self.is_up = True
        for pace in self.workers:
            pace.back(self.clockwork.now)

    def kill(self, pace: SharedPace) -> None:
        """Its process is gone: it neither sends nor hears."""
        self.workers.remove(pace)


def worker(
    clockwork: Clockwork,
    site: SimulatedHost,
    ledger: Ledger,
    number: int,
    own: Callable[[], Pace],
    random: Random,
    work: Work,
    start: float = 0.0,
) -> FlowClient:
    """One process with its tasks."""
    pace = SharedPace("example.org", f"worker-{number}", own, post=ledger.post, look_at=ledger.look_at)
    host = Host("example.org", pace, clockwork.now, random, bucket=pace.bucket)
    pace.host = host
    ledger.workers.append(pace)
    return FlowClient(clockwork, site, host, number, work, start)
