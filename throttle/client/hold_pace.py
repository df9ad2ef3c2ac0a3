"""The pace under a limit that was found: keep to the bucket that explains the refusals, and ask now and then.

A refusal is bought with requests served. Between two that are sought lies a plan of so many requests: the first
half goes at one of the lower likely rates, the second in the middle, and when nothing refuses the higher one
either, the limit has moved, and the pace accelerates.
"""

from collections import deque

from throttle.client.bucket_fit import Epoch, Fit, bucket_fit

EPOCHS = 6  # remembered
# A plan has at least so many requests, or so many seconds' worth, but no more than MOST for the seconds' sake …
LEAST, SECONDS, MOST = 150.0, 40.0, 300.0
# … and so many that what a rest costs beyond the bucket's refill is this share.
REST_SHARE = 0.01
# A fit wider than UNSURE is worth an earlier refusal: a tenth of the plan at the earliest, and no fewer requests
# than EARLIEST; a slow host's few requests make each refusal dear, so there SLOW ÷ rate.
UNSURE, EARLIEST_SHARE, EARLIEST, SLOW = 0.1, 0.1, 40.0, 150.0
# Requests that earn a refusal. Who has overdrawn waits for OVERDRAWN.
BUDGET, OVERDRAWN = 150.0, 250.0
# A rest of so many seconds makes a refusal something to avoid.
DEAR = 4.0
# So many early refusals in a row, each answered with a slower pace, were in vain.
IN_VAIN = 5
# After the plan, and this much more, accelerate; a stage lasts so many requests, and until they are answered.
GRACE, STAGE = 1.1, 6
# Seconds' worth of tokens that may still pay for an excess: no more than twice the rate before these are spent.
BUCKET_SECONDS = 3.0


class HoldPace:
    """`fit` is None until the first refusal."""

    def __init__(self) -> None:
        self.fit: Fit | None = None
        self.plan = 0.0  # requests until a refusal is sought
        self.is_strange = False  # the last refusal contradicts those before it, or only an absurd bucket fits
        self.is_in_vain = False
        self._epochs: deque[Epoch] = deque(maxlen=EPOCHS)
        self._before: tuple[Fit, list[Epoch]] | None = None
        self._level = 0.0  # tokens we believe to be in the host's bucket
        self._early = 0  # refusals in a row that came long before they were sought
        self._is_dear = False
        self._over = 0.0  # the probe's share above the limit
        self._excess = 0.0  # requests sent above the limit since the plan was over
        self._stage = 0
        self._sent = 0

    # -- what a refusal teaches

    def remember(self, epoch: Epoch) -> None:
        self._epochs.append(epoch)

    def refused(self, epoch: Epoch, sent: int) -> None:
        """The last of `sent` requests was refused: fit anew."""
        self._before = None if self.fit is None else (self.fit, list(self._epochs))
        self._early = self._early + 1 if sent < 0.5 * self.plan else 0
        self._epochs.append(epoch)
        known = len(self._epochs)
        self.fit = fit = bucket_fit(list(self._epochs))
        for _ in range(known - fit.epochs):
            self._epochs.popleft()
        rate = fit.rates[2]
        self.is_strange = known > fit.epochs or (rate > 3 and fit.burst < 1.2 + 0.06 * rate)
        # Slowing down again and again has not helped: it is not the pace that is refused.
        self.is_in_vain = self._early >= IN_VAIN

    def make_plan(self, rest: float, is_overdrawn: bool) -> None:
        """For the time after a rest of `rest` seconds."""
        assert self.fit is not None
        low, _, rate, _, high = self.fit.rates
        spread = max(0.01, (high - low) / rate)
        self._is_dear = rest >= DEAR and spread < 0.2
        # What flows into the bucket while we rest is not lost, as far as it holds that much.
        lost = rest * rate - 0.7 * min(self.fit.burst, rest * rate)
        settled = max(LEAST, min(MOST, SECONDS * rate), lost / REST_SHARE)
        earliest = OVERDRAWN if is_overdrawn else max(EARLIEST, min(100.0, SLOW / rate))
        self.plan = max(earliest, settled * max(EARLIEST_SHARE, min(1.0, UNSURE / spread)))

    def recall(self) -> bool:
        """Back to what was known before the last refusal, if anything was."""
        if self._before is None:
            return False
        self.fit = self._before[0]
        self._epochs = deque(self._before[1], maxlen=EPOCHS)
        return True

    def recall_fit(self, rate: float, low: float, high: float, burst: float) -> None:
        """A fit from an earlier life, without the refusals that led to it: the next one is not compared with them."""
        self.fit = Fit((low, (low * rate) ** 0.5, rate, (rate * high) ** 0.5, high), burst, 0)
        self.make_plan(0.0, False)

    def forget(self) -> None:
        self.fit = None
        self._epochs.clear()
        self._early = 0

    def measured_rate(self) -> float:
        """What was accepted in the epochs remembered, by the time they took, rests included."""
        seconds = sum(piece[0] for epoch in self._epochs for piece in epoch.pieces)
        rested = sum(epoch.rest or 0.0 for epoch in self._epochs)
        return sum(piece[1] for epoch in self._epochs for piece in epoch.pieces) / max(0.1, seconds + rested)

    # -- the rate

    def begin(self, rest: float) -> None:
        """The first request after a rest is about to be sent."""
        self._sent = self._stage = 0
        if self.fit is not None:
            self._level = min(self.fit.burst, rest * self.fit.rates[2])

    def sent(self, gap: float, is_on_time: bool) -> None:
        self._sent += 1
        self._stage += is_on_time
        if self.fit is not None:
            self._level = min(self.fit.burst, self._level + self.fit.rates[2] * gap) - 1

    def rate(self, pace: float, latency: float) -> float:
        """`pace` is the rate just now, `latency` the seconds until an answer tells of it."""
        assert self.fit is not None
        low, lower, middle, upper, high = self.fit.rates
        progress = self._sent / self.plan
        if progress >= GRACE:
            return self._accelerate(max(high, 1.02 * middle), pace, latency)
        self._stage = 0
        self._excess = 0.0
        # A probe is the gentler the more will be in flight when it is refused.
        self._over = max(0.03, min(0.45, 0.5 / (middle * latency)))
        if self._is_dear and progress < 1:
            return 0.97 * lower
        if self._early > 1 and progress < 0.75:
            # It has been wrong twice: a step lower each time.
            return 0.99 * (low if high < 1.5 * low else lower) * 0.93 ** (self._early - 2)
        if self.fit.burst < 2 and progress < 1:
            # A bucket of one token forgives nothing, and refuses at the very rate: come up to it slowly.
            return 0.985 * lower + (upper - 0.985 * lower) * progress
        if progress < 0.5:
            rate = low if middle < 5 and high > 1.5 * low else min(lower, 0.99 * middle)
        elif progress < 1:
            # Between the two likeliest when there are two, so that what comes decides between them.
            rate = (lower * upper) ** 0.5
        else:
            rate = max(upper, 1.01 * middle)
        # The rest has filled the bucket: spend that over the plan, so that a refusal is due at its end.
        left = max(self.plan - self._sent, 0.2 * self.plan)
        return rate * (1 + min(0.25, max(0.0, self._level - 1) / left))

    def _accelerate(self, limit: float, pace: float, latency: float) -> float:
        """Nothing refuses: the limit is higher than the fit says."""
        assert self.fit is not None
        middle = self.fit.rates[2]
        # Beyond twice the rate, first see that no bucket can still be paying for it.
        is_paid = self._over >= 1 and self._excess <= BUCKET_SECONDS * middle
        if self._stage >= max(STAGE, 2 * pace * latency) and not is_paid:
            self._stage = 0
            self._over *= 2
        self._excess += 1 - middle / pace
        return limit * (1 + self._over)
