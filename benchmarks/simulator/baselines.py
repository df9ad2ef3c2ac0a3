"""Other people's ways to hold back, each rewritten in a few lines from its source, with its defaults.

Where a default had no meaning here the docstring says what was taken.
"""

from random import Random

from benchmarks.simulator.hosts import Reply, Steps
from benchmarks.simulator.situations import Situation


class AutoThrottle:
    """Scrapy 2.19, extensions/throttle.py: delay towards latency ÷ 1, 8 at once, refusals never slow it down."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.delay = 5.0
        self.next_at = 0.0

    def ready_at(self, now: float, in_flight: int) -> float:
        return self.next_at if in_flight < 8 else float("inf")

    def sent(self, now: float) -> None:
        self.next_at = now + self.delay * self.random.uniform(0.5, 1.5)

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        latency = now - sent_at
        new = min(60.0, max(0.0, latency, (self.delay + latency) / 2))
        if reply.status == 200 or new > self.delay:
            self.delay = new
        return 0.0


class BotocoreAdaptive:
    """botocore 1.44, retries/adaptive.py: a token bucket under CUBIC; each refused task backs off with full jitter."""

    SCALE, BETA, SMOOTH, RATE_MIN = 0.4, 0.7, 0.8, 0.5

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rate: float | None = None  # no limit before the first refusal
        self.tokens = 0.0
        self.updated = 0.0
        self.measured = 0.0
        self.slot = 0.0
        self.count = 0
        self.w_max = 0.0
        self.k = 0.0
        self.cut_at = 0.0

    def ready_at(self, now: float, in_flight: int) -> float:
        if self.rate is None:
            return now
        self.tokens = min(max(self.rate, 1.0), self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        return now if self.tokens >= 1 else now + (1 - self.tokens) / self.rate

    def sent(self, now: float) -> None:
        if self.rate is not None:
            self.tokens -= 1

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        slot = int(now * 2) / 2
        self.count += 1
        if slot > self.slot:
            self.measured = self.SMOOTH * self.count / (slot - self.slot) + (1 - self.SMOOTH) * self.measured
            self.slot, self.count = slot, 0
        if reply.status == 200:
            if self.rate is not None:
                cubic = self.SCALE * (now - self.cut_at - self.k) ** 3 + self.w_max
                self.rate = max(self.RATE_MIN, min(cubic, 2 * self.measured))
            return 0.0
        limit = self.measured if self.rate is None else min(self.measured, self.rate)
        self.w_max = limit
        self.k = (self.w_max * (1 - self.BETA) / self.SCALE) ** (1 / 3)
        self.cut_at = now
        self.rate = max(self.RATE_MIN, limit * self.BETA)
        return self.random.uniform(0.0, 1.0)


class AimdBucket:
    """gadget-inc/aimd-bucket: +1/s a success, halved while over 20 % of 30 s failed; 10/s at first, not infinite."""

    def __init__(self) -> None:
        self.rate = 10.0
        self.tokens = 10.0
        self.updated = 0.0
        self.window: list[tuple[float, bool]] = []

    def ready_at(self, now: float, in_flight: int) -> float:
        self.tokens = min(self.rate, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        return now if self.tokens >= 1 - 1e-9 else now + (1 - self.tokens) / self.rate

    def sent(self, now: float) -> None:
        self.tokens -= 1

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        self.window.append((now, reply.status == 200))
        while self.window[0][0] < now - 30:
            self.window.pop(0)
        failed = sum(1 for _, good in self.window if not good)
        if len(self.window) >= 5 and failed > 0.2 * len(self.window):
            self.rate = max(1.0, self.rate / 2)
        elif reply.status == 200:
            self.rate = min(100.0, self.rate + 1)
        return 0.0


class FirstDocument:
    """Its code as printed: a lock and an interval; nobody pauses the others, and waits that are told are unread."""

    def __init__(self, random: Random) -> None:
        self.interval = 1.0
        self.next_at = 0.0

    def ready_at(self, now: float, in_flight: int) -> float:
        return self.next_at

    def sent(self, now: float) -> None:
        self.next_at = now + self.interval

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        if reply.status == 200:
            self.interval = max(0.1, self.interval - 0.05)
        else:
            self.interval = min(10.0, self.interval * 2)
        return 0.0


class ThirdDocument:
    """Its code as printed: a sliding window of one second, the table's rate, ten workers, the decay of 429s alone."""

    def __init__(self) -> None:
        self.rate = 10
        self.hits: list[float] = []
        self.successes = 0
        self.in_a_row = 0

    def ready_at(self, now: float, in_flight: int) -> float:
        if in_flight >= 10:
            return float("inf")
        while self.hits and self.hits[0] <= now - 1:
            self.hits.pop(0)
        return now if len(self.hits) < self.rate else self.hits[0] + 1

    def sent(self, now: float) -> None:
        self.hits.append(now)

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        if reply.status == 429:
            self.in_a_row += 1
            self.rate = max(1, self.rate >> min(self.in_a_row, 8))
            self.successes = 0
        elif reply.status == 200:
            self.in_a_row = 0
            self.successes += 1
            if self.successes == 100:
                self.rate, self.successes = self.rate + 1, 0
        return 0.0


class Oracle:
    """Knows the host's rate, steps, slots and outages, and spends a rested bucket.

    It keeps a thousandth back, a hundredth where the bucket is tiny.
    """

    def __init__(self, situation: Situation, caller: int) -> None:
        self.situation = situation
        self.starts = situation.starts
        self.caller = caller
        self.next_at = 0.0

    def ready_at(self, now: float, in_flight: int) -> float:
        if in_flight >= max(1, self.situation.in_flight // len(self.starts)):
            return float("inf")
        outage = self.situation.outage
        if outage and outage[0] - 0.05 <= now < outage[1]:
            return outage[1]
        if self.situation.bursts and now > self.next_at:  # what rest has saved up
            rate = self.rate(now)
            self.next_at = max(self.next_at, now - max(0.0, self.situation.burst - 1) / rate)
            return now
        return self.next_at

    def sent(self, now: float) -> None:
        base = self.next_at if self.situation.bursts else max(self.next_at, now - 1e-6)
        self.next_at = base + 1 / self.rate(now)

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        return 0.0

    def rate(self, now: float) -> float:
        here = sum(1 for start in self.starts if start <= now)
        # Before a step down nothing may be saved up in the air: what is under way arrives under the new rate.
        rates: Steps = self.situation.rate
        # … and where a bucket holds one token, the network's jitter alone costs a refusal.
        held_back = 0.999 if self.situation.burst >= 4 or not self.situation.burst else 0.99
        return held_back * min(rates.at(now), rates.at(now + 0.02)) / max(1, here)
