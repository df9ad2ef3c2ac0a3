"""The default pace: finds a limit that nobody tells, and is hardly ever refused.

It knows four ways to go on, and a host that sends RateLimit fields spares it all of them:

seek      nothing is known: start low, double every few requests until a refusal comes
hold      a bucket was fitted to what was accepted and refused (`bucket_fit`): keep to its likely rates, the lower
          ones first, the higher ones later, and when nothing refuses them either, accelerate
window    the refusal told a countdown: what was accepted until its end is what a window holds
share     no bucket explains the refusals, so others draw from it, too: grow evenly, cut at each refusal

How many may be open at once is found apart from all this (`latency_limit`). Constants count requests wherever
they can, since seconds mean little without a rate.
"""

from collections import deque
from math import exp
from random import Random

from throttle.client.bucket_fit import Epoch, Fit, bucket_fit
from throttle.client.latency_limit import LatencyLimit
from throttle.client.pace import rest_seconds
from throttle.client.quota_pace import QuotaPace
from throttle.client.send_log import SendLog
from throttle.rate_limit_fields import Quota

# -- seek
DOUBLE_AFTER = 6  # requests; never before the answers at this rate are in
SOON = 32.0  # a second; beyond it never faster than half of all that was sent, a second: a spent quota costs what
SENT_SHARE = 0.5  # is in flight
# -- hold
EPOCHS = 6  # remembered
REQUESTS_A_REFUSAL = 150  # at least so many are served between two refusals that are sought …
SLOW_REQUESTS = 150.0  # … divided by the rate: of a slow host's few requests each refusal is a larger share …
SECONDS_A_REFUSAL = 30.0  # … and so many seconds' worth of a fast one's …
REST_SHARE = 0.01  # … and so many that what a rest costs beyond the bucket's refill is this share
BUDGET = 125.0  # requests that earn a refusal; who has overdrawn waits for the next
UNSURE = 0.1  # a fit this wide is worth an earlier refusal
UNSURE_LEAST = 0.1
UNDER, MIDDLE = 0.99, 0.0
SLOW_REFUSAL = 2.0  # seconds
DEAR = 4.0  # seconds of rest that make a refusal a thing to avoid
BRISK = 40.0  # a second
# -- share
GROWTH, CUT = 0.04, 0.6
SHARED_LEAST = 1.0  # a second: below it a single refusal weighs too much to tell company by
STRANGE = 3  # of the last EPOCHS refusals, contradicting those before them


class SeekingPace:
    """`rate` at first, within `rate_min` and `rate_max`; at most `in_flight_max` at once."""

    capacity = 1.0

    def __init__(
        self,
        random: Random,
        *,
        rate: float = 2.0,
        rate_min: float = 0.01,
        rate_max: float = 1000.0,
        in_flight_max: int = 100,
    ) -> None:
        self.rate = rate
        self.rate_min = rate_min
        self.rate_max = rate_max
        self.fit: Fit | None = None
        self._random = random
        self._slots = LatencyLimit(4, in_flight_max)
        self.in_flight_max: float = self._slots.limit
        self._log = SendLog()
        self._epochs: deque[Epoch] = deque(maxlen=EPOCHS)
        self._is_rested = True
        self._latency = 0.1
        self._plan = 0.0  # requests until a refusal is sought
        self._on_time = 0
        self._level = 0.0  # tokens we believe to be in the host's bucket
        self._over = 0.0
        self._excess = 0.0
        self._refusals = 0
        self._served = 0
        self._early = 0  # refusals in a row that came long before they were sought
        self._is_dear = False
        self._slot_epoch: Epoch | None = None
        # lock-outs
        self._dropped_at = 0.0
        self._scouts = 0
        self._lock_out: float | None = None
        self._before: tuple[Fit, list[Epoch]] | None = None
        # window
        self._window: float | None = None
        self._window_sent = 0
        self._window_start: float | None = None
        self._told = 0.0
        # share
        self._strange: deque[bool] = deque(maxlen=EPOCHS)
        self._is_sharing = False
        # quota
        self._quota = QuotaPace()

    # -- hearing

    def sent(self, now: float, height: int) -> None:
        log = self._log
        gap = now - log.last
        is_late = False
        if self._is_rested:
            self._begin(now, gap)
        elif self._slots.sent(height) and self.rate * self._latency > 2 * self.in_flight_max:
            pass  # neither on time nor late: the slots hold it back, and a faster pace would change nothing
        elif gap > 1.5 / self.rate + 0.01:
            is_late = True
        else:
            self._on_time += 1
        if self.fit is not None:
            self._level = min(self.fit.burst, self._level + self.fit.rates[2] * min(gap, 60.0)) - 1
        self._quota.sent()
        log.send(now, self.rate, is_late)
        self._steer(now, 0.0 if is_late else min(gap, 60.0))

    def served(self, now: float, sent_at: float, height: int) -> None:
        self._served += 1
        self._latency += 0.05 * (min(now - sent_at, 4 * self._latency) - self._latency)
        if self._scouts:
            self._reopened(sent_at)
        self._slots.served(now, sent_at, height)
        self.in_flight_max = self._slots.limit

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if in_a_row > 1:
            self._scouts += 1
            if self._slot_epoch is not None:
                self._slots.retract()
                self.in_flight_max = self._slots.limit
                self._refit(self._slot_epoch, None)
                self._slot_epoch = None
            rest = rest_seconds(told, in_a_row, first=1.0)
            return rest if told is not None else rest * self._random.uniform(0.95, 1.05)
        self._is_rested = True
        if told is not None and now - sent_at > max(SLOW_REFUSAL, 5 * self._latency):
            return told  # who counts refuses at once: this was load, and not our pace
        self._refusals += 1
        self._dropped_at = sent_at
        epoch = self._log.epoch(sent_at, told)
        if told is None and self._slots.refused(now, height):
            self.in_flight_max = self._slots.limit
            self._slot_epoch = epoch
            if self._slots.is_proven and self.fit is not None:
                self.fit = None  # it was slots all the time, and no bucket
                self._epochs.clear()
            return self._latency
        if self._slot_epoch is not None:
            self.in_flight_max = self._slots.limit
            if self._slots.was_wrong:
                self._epochs.append(self._slot_epoch)
            self._slot_epoch = None
        self._window_sent += round(sum(piece[1] for piece in epoch.pieces))
        if told is not None and self._is_countdown(now, told):
            return told
        return self._refit(epoch, told)

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        self._quota.told(now, quota, in_flight)
        self._steer(now, 0.0)
        return self._quota.rest

    # -- what a refusal teaches

    def _refit(self, epoch: Epoch, told: float | None) -> float:
        self._before = None if self.fit is None else (self.fit, list(self._epochs))
        self._early = self._early + 1 if self._log.sent < 0.5 * self._plan else 0
        self._epochs.append(epoch)
        known = len(self._epochs)
        self.fit = fit = bucket_fit(list(self._epochs))
        for _ in range(known - fit.epochs):
            self._epochs.popleft()
        rate = fit.rates[2]
        rest = told if told is not None else self._lock_out or max(0.5, 1.5 / rate)
        self._judge_company(known > fit.epochs or (rate > 3 and fit.burst < 1.2 + 0.06 * rate))
        spread = max(0.01, (fit.rates[4] - fit.rates[0]) / rate)
        self._is_dear = rest >= DEAR and spread < 0.2
        # What flows into the bucket while we rest is not lost, as far as it holds that much.
        lost = rest * rate - 0.7 * min(fit.burst, rest * rate)
        settled = max(REQUESTS_A_REFUSAL, min(250.0, SECONDS_A_REFUSAL * rate), lost / REST_SHARE)
        if self._refusals > 2 + self._served / BUDGET:
            self._plan = max(200.0, settled)
        else:
            self._plan = max(40.0, min(100.0, SLOW_REQUESTS / rate), settled * max(UNSURE_LEAST, min(1.0, UNSURE / spread)))
        return rest

    def _is_countdown(self, now: float, told: float) -> bool:
        """A wait of many requests' time, and not always the same: a window that will be refilled at its end."""
        start, end = self._window_start or 0.0, now + told
        rate = max(self.rate_min, self._window_sent / max(0.1, end - start))
        is_long = told >= 3 and told * self.rate > 8
        is_new = not 0.9 * self._told < told < 1.1 * self._told
        is_same = self._window is not None and 0.9 < rate / self._window < 1.1 and (told < 3 or is_new) and self._log.sent < 1.1 * self._plan
        held = self._window_sent
        self._told, self._window_start, self._window_sent = told, end, 0
        if not is_same and not (is_long and is_new):
            self._window = None
            return False
        self._window = rate
        self._is_dear = False
        self._early = 0
        self._epochs.clear()
        # To be refused once at the end of a large window measures it; of a small one that is too large a share.
        lean = 1.02 if held > 300 else 0.985
        self.fit = Fit((0.99 * rate, rate, rate, 1.02 * rate, 1.03 * rate), 1.0, 0)
        self._window_lean = lean
        self._plan = max(40.0, min(160.0 if is_same or rate < 0.2 else 75.0, SLOW_REQUESTS / rate), (3.0 if is_same else 1.2) * held)
        return True

    def _reopened(self, sent_at: float) -> None:
        """Scouts were refused, and one is served: how long was the host shut?"""
        length = sent_at - self._dropped_at
        self._scouts = 0
        if length > 20 and self._before is not None and self._lock_out is None:
            # So long, and not for the first refusal: an outage, which says nothing of the limit.
            self.fit = self._before[0]
            self._epochs = deque(self._before[1], maxlen=EPOCHS)
        else:
            self._lock_out = length

    def _judge_company(self, is_strange: bool) -> None:
        self._strange.append(is_strange)
        strange = sum(self._strange)
        if not self._is_sharing and strange >= STRANGE and self.rate > SHARED_LEAST:
            self._is_sharing = True
            seconds = sum(piece[0] for epoch in self._epochs for piece in epoch.pieces)
            rested = sum(epoch.rest or 0.0 for epoch in self._epochs)
            sent = sum(piece[1] for epoch in self._epochs for piece in epoch.pieces)
            self.rate = max(self.rate_min, sent / max(0.1, seconds + rested))
        elif self._is_sharing and strange == 0:
            self._is_sharing = False
        if self._is_sharing:
            self.rate = max(self.rate_min, self.rate * CUT)

    # -- saying

    def _begin(self, now: float, gap: float) -> None:
        """The first request after a rest."""
        self._is_rested = False
        self._on_time = 0
        rest = gap if self._refusals else None
        self._log.begin(now, rest)
        if self._window_start is None:
            self._window_start = now
        if self.fit is not None and rest is not None:
            self._level = min(self.fit.burst, rest * self.fit.rates[2])

    def _steer(self, now: float, gap: float) -> None:
        if self._quota.is_told(now):
            rate = self._quota.rate(now)
        elif self._is_sharing:
            rate = self.rate * exp(GROWTH * gap)
        elif self.fit is None:
            rate = self._seek()
        elif self.rate > BRISK and self._log.sent % 8:
            return  # what changes with each request changes little with the next
        else:
            rate = self._hold(self.fit)
        self.rate = max(self.rate_min, min(self.rate_max, rate))

    def _seek(self) -> float:
        if self._on_time < max(DOUBLE_AFTER, 2 * self.rate * self._latency):
            return self.rate
        self._on_time = 0
        return max(self.rate, min(2 * self.rate, max(SOON, SENT_SHARE * self._log.sent)))

    def _hold(self, fit: Fit) -> float:
        low, lower, middle, upper, high = fit.rates
        progress = self._log.sent / self._plan
        if progress >= 1.1:
            return self._accelerate(middle, high)
        self._on_time = 0
        self._excess = 0.0
        # How much faster a probe may be hangs on what is in flight when it is refused.
        self._over = max(0.03, min(0.45, 0.5 / (middle * self._latency)))
        if self._window is not None:
            return self._window_lean * middle
        if self._is_dear and progress < 1:
            return 0.97 * lower
        if self._early > 1 and progress < 0.75:
            return 0.99 * low * 0.93 ** (self._early - 2)
        if fit.burst < 2 and progress < 1:
            return 0.495 * (lower + middle)
        if progress < 0.5:
            rate = low if middle < 5 and high > 1.5 * low else min(lower, UNDER * middle)
        elif progress < 1:
            rate = max((lower * upper) ** 0.5, MIDDLE * middle)
        else:
            rate = max(upper, 1.01 * middle)
        # The rest has filled the bucket: spend that over the plan, so that a refusal is due at its end.
        left = max(self._plan - self._log.sent, 0.2 * self._plan)
        return rate * (1 + min(0.25, max(0.0, self._level - 1) / left))

    def _accelerate(self, middle: float, high: float) -> float:
        """Nothing refuses: the limit is higher than the fit says."""
        if self._on_time >= max(DOUBLE_AFTER, 2 * self.rate * self._latency):
            # Beyond twice the rate, first see that no bucket can still be paying for it.
            if self._over < 1 or self._excess > 3 * middle:
                self._on_time = 0
                self._over *= 2
        self._excess += 1 - middle / self.rate
        return max(high, 1.02 * middle) * (1 + self._over)
