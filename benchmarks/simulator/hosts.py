"""What a site refuses, and how fast it answers. None tells its limit but by refusing, unless it sends fields.

A request travels `NETWORK` seconds each way, is refused within `REFUSING` or served within a log-normal time.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp
from random import Random

from benchmarks.simulator.clockwork import Clockwork
from throttle.rate_limit_fields import Quota

NETWORK = 0.010
NETWORK_JITTER = 0.3
REFUSING = 0.020
SERVICE = 0.080
SERVICE_SIGMA = 0.25


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    retry_after: float | None = None
    quota: Quota | None = None


class SimulatedHost:
    """`limits` are asked in turn when a request arrives; each may refuse it."""

    def __init__(self, clockwork: Clockwork, random: Random, service: float = SERVICE) -> None:
        self.clockwork = clockwork
        self.random = random
        self.service = service

    def send(self, caller: int, landed: Callable[[Reply], None]) -> None:
        self.clockwork.after(self.network(), self.arrive, caller, landed)

    def network(self) -> float:
        return NETWORK * (1 + NETWORK_JITTER * (2 * self.random.random() - 1))

    def service_time(self) -> float:
        sigma = SERVICE_SIGMA
        return self.service * exp(self.random.gauss(-sigma * sigma / 2, sigma))

    def arrive(self, caller: int, landed: Callable[[Reply], None]) -> None:
        reply = self.judge(self.clockwork.now, caller)
        busy = self.service_time() if reply.status == 200 else REFUSING
        self.clockwork.after(busy + self.network(), landed, reply)

    def judge(self, now: float, caller: int) -> Reply:
        raise NotImplementedError


class Steps:
    """A number that changes at given times: `Steps(8)`, `Steps((0, 8), (150, 2))`."""

    def __init__(self, *steps: float | tuple[float, float]) -> None:
        pairs = [step if isinstance(step, tuple) else (0.0, step) for step in steps]
        self.times = [time for time, _ in pairs]
        self.values = [value for _, value in pairs]

    def at(self, time: float) -> float:
        return self.values[bisect_right(self.times, time) - 1]

    def sum(self, until: float) -> float:
        ends = [*self.times[1:], until]
        return sum(
            value * max(0.0, min(end, until) - start)
            for start, end, value in zip(self.times, ends, self.values, strict=True)
        )


class BucketHost(SimulatedHost):
    """A token bucket, of `burst` tokens; refused with or without a Retry-After; `shut_out` seconds when exceeded."""

    def __init__(
        self,
        clockwork: Clockwork,
        random: Random,
        rate: Steps,
        burst: float,
        *,
        status: int = 429,
        tells: bool = True,
        shut_out: float = 0.0,
        outages: tuple[tuple[float, float], ...] = (),
        service: float = SERVICE,
    ) -> None:
        super().__init__(clockwork, random, service)
        self.rate = rate
        self.burst = burst
        self.status = status
        self.tells = tells
        self.shut_out = shut_out
        self.outages = outages
        self.level = burst
        self.updated = 0.0
        self.shut_until = 0.0

    def judge(self, now: float, caller: int) -> Reply:
        rate = self.rate.at(now)
        self.level = min(self.burst, self.level + rate * (now - self.updated))
        self.updated = now
        if any(start <= now < end for start, end in self.outages):
            return Reply(503)
        if now < self.shut_until:
            return self.refusal(self.shut_until - now)
        if self.level >= 1:
            self.level -= 1
            return Reply(200)
        if self.shut_out:
            self.shut_until = now + self.shut_out
            return self.refusal(self.shut_out)
        return self.refusal((1 - self.level) / rate)

    def refusal(self, seconds: float) -> Reply:
        return Reply(self.status, float(max(1, ceil(seconds))) if self.tells else None)


class WindowHost(SimulatedHost):
    """So many in a fixed window, counted from the first request; refused with a countdown; told in fields or not."""

    def __init__(
        self,
        clockwork: Clockwork,
        random: Random,
        quota: int,
        window: float,
        *,
        fields: bool = False,
        tells: bool = True,
    ) -> None:
        super().__init__(clockwork, random)
        self.quota = quota
        self.window = window
        self.fields = fields
        self.tells = tells
        self.used = 0
        self.index = 0

    def judge(self, now: float, caller: int) -> Reply:
        if int(now / self.window) != self.index:
            self.index = int(now / self.window)
            self.used = 0
        left = (self.index + 1) * self.window - now
        is_over = self.used >= self.quota
        self.used += not is_over
        told = Quota(self.quota - self.used, float(ceil(left)), self.quota, self.window) if self.fields else None
        if is_over:
            return Reply(429, float(max(1, ceil(left))) if self.tells else None, told)
        return Reply(200, None, told)


class WorkerHost(SimulatedHost):
    """`workers` serve, `queue` wait for them, the rest are refused with 503. Without a queue: slots."""

    def __init__(
        self, clockwork: Clockwork, random: Random, workers: int, queue: int, *, service: float = SERVICE
    ) -> None:
        super().__init__(clockwork, random, service)
        self.workers = workers
        self.queue = queue
        self.busy = 0
        self.waiting: deque[Callable[[Reply], None]] = deque()

    def arrive(self, caller: int, landed: Callable[[Reply], None]) -> None:
        if self.busy < self.workers:
            self.begin(landed)
        elif len(self.waiting) < self.queue:
            self.waiting.append(landed)
        else:
            self.clockwork.after(REFUSING + self.network(), landed, Reply(503))

    def begin(self, landed: Callable[[Reply], None]) -> None:
        self.busy += 1
        self.clockwork.after(self.service_time(), self.finish, landed)

    def finish(self, landed: Callable[[Reply], None]) -> None:
        self.busy -= 1
        self.clockwork.after(self.network(), landed, Reply(200))
        if self.waiting:
            self.begin(self.waiting.popleft())
