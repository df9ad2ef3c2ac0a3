"""The pace under a limit that was found: keep to the bucket that explains the refusals, and ask now and then.

A refusal is bought with requests served; between two that are sought lies a plan of so many requests (`refusal_plan`).
While the fit is wide the pace climbs through all that is likely, so that a refusal soon tells. Under a sure one the
plan's first part goes at one of the lower likely rates, the second in the middle; and when nothing refuses the higher
one either, the limit has moved, and the pace accelerates.
"""

from collections import deque

from throttle.client.pace.bucket_fit import Epoch, Fit, bucket_fit
from throttle.client.pace.refusal_plan import refusal_plan

EPOCHS, KNOWN = 6, 3  # remembered; that make a bucket known
# Of a known bucket the highest likely rate is no more than so many times the lowest.
SETTLED = 1.2
# A refusal that older ones do not explain is strange when it came within this share of the plan, or when the rate it
# suggests is so many times another. Otherwise the fit was a little wrong, and is now right.
SOON, OTHER = 0.25, 1.15
# So many early refusals in a row, each answered with a slower pace, were in vain.
IN_VAIN, EARLY = 5, 0.5
# A rest of so many seconds makes a refusal something to avoid.
DEAR = 4.0
# The shares of a sure plan that may go at the lower rate. They differ, since experiments that are all alike leave two
# buckets apart that both explain them.
FIRST_LEAST, FIRST_MORE = 0.25, 0.5
# After the plan, and this much more, accelerate; a stage lasts so many requests, or seconds, and until it is answered.
GRACE, STAGE, STAGE_SECONDS = 1.1, 6, 0.5
# Seconds' worth of tokens that may still pay for an excess: no more than twice the rate before these are spent.
BUCKET_SECONDS = 3.0


class HoldPace:
    """`fit` is None until the first refusal."""

    def __init__(self) -> None:
        self.fit: Fit | None = None
        self.plan = 0.0  # requests until a refusal is sought
        self.is_strange = False  # the last refusal contradicts those before it
        self.is_in_vain = False
        self._epochs: deque[Epoch] = deque(maxlen=EPOCHS)
        self._before: tuple[Fit, list[Epoch]] | None = None
        self._level = 0.0  # tokens we believe to be in the host's bucket
        self._first = 0.5  # the share of the plan that goes at a lower rate
        self._early = 0  # refusals in a row that came long before they were sought
        self._is_dear = False
        self._over = 0.0  # the probe's share above the limit
        self._excess = 0.0  # requests sent above the limit since the plan was over
        self._stage = 0
        self._sent = 0

    # -- what a refusal teaches

    def remember(self, epoch: Epoch) -> None:
        self._epochs.append(epoch)

    def refused(self, epoch: Epoch, sent: int, is_sharing: bool = False) -> None:
        """The last of `sent` requests was refused: fit anew."""
        self._before = None if self.fit is None else (self.fit, list(self._epochs))
        self._early = self._early + 1 if sent < EARLY * self.plan and not is_sharing else 0
        self._epochs.append(epoch)
        known = len(self._epochs)
        self.fit = bucket_fit(list(self._epochs))
        for _ in range(known - self.fit.epochs):
            self._epochs.popleft()
        self.is_strange = known > self.fit.epochs and self._is_another(self.fit.rates[2], sent)
        # Slowing down again and again has not helped: it is not the pace that is refused.
        self.is_in_vain = self._early >= IN_VAIN

    def _is_another(self, rate: float, sent: int) -> bool:
        """A refusal that was sought tells of a limit that rose, and of nobody else."""
        if self._before is None or sent >= self.plan:
            return False
        return sent < SOON * self.plan or not 1 / OTHER < rate / self._before[0].rates[2] < OTHER

    def make_plan(self, rest: float, refusals: int, served: int, vary: float = 0.5) -> None:
        """For the time after a rest of `rest` seconds; `vary` is drawn between 0 and 1."""
        assert self.fit is not None
        self.plan = refusal_plan(self.fit, rest, refusals, served)
        self._first = FIRST_LEAST + FIRST_MORE * vary
        self._is_dear = rest >= DEAR and not self.fit.is_wide

    @property
    def is_known(self) -> bool:
        """True once one bucket has explained three refusals."""
        return self.fit is not None and self.fit.epochs >= KNOWN

    @property
    def is_settled(self) -> bool:
        """… and leaves little doubt."""
        return self.fit is not None and self.is_known and self.fit.rates[4] < SETTLED * self.fit.rates[0]

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
        self.make_plan(0.0, 0, 0)

    def forget(self) -> None:
        self.fit = None
        self._epochs.clear()
        self._early = 0

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
        _, lower, middle, upper, high = self.fit.rates
        progress = self._sent / self.plan
        if progress >= GRACE:
            return self._accelerate(max(high, 1.02 * middle), pace, latency)
        self._stage = 0
        self._excess = 0.0
        # A probe is the gentler the more will be in flight when it is refused.
        self._over = max(0.03, min(0.45, 0.5 / (middle * latency)))
        if self.fit.is_wide:
            return self._climb(progress)
        if self._is_dear and progress < 1:
            return 0.99 * lower
        if self._early > 1 and progress < 0.75:
            # It has been wrong twice: a step lower each time.
            return 0.99 * lower * 0.93 ** (self._early - 2)
        if self.fit.burst < 2 and progress < 1:
            # A bucket of one token forgives nothing, and refuses at the very rate: come up to it slowly.
            return 0.995 * lower + (upper - 0.995 * lower) * progress
        if progress < self._first:
            rate = min(lower, 0.99 * middle)
        elif progress < 1:
            # Between the two likeliest when there are two, so that what comes decides between them.
            rate = (lower * upper) ** 0.5
        else:
            rate = max(upper, 1.01 * middle)
        # The rest has filled the bucket: spend that over the plan, so that a refusal is due at its end.
        left = max(self.plan - self._sent, 0.2 * self.plan)
        return rate * (1 + min(0.25, max(0.0, self._level - 1) / left))

    def _climb(self, progress: float) -> float:
        """Through all that is likely, from below: whatever the limit is, it refuses soon after it is passed."""
        assert self.fit is not None
        start = 0.97 * self.fit.rates[1] * 0.93 ** max(0, self._early - 1)
        # The first fit is so wide that most of it is too fast.
        shape = 0.7 if self.fit.epochs == 1 else 0.5
        climbed: float = (1.02 * self.fit.rates[4] / start) ** progress**shape
        return start * climbed

    def _accelerate(self, limit: float, pace: float, latency: float) -> float:
        """Nothing refuses: the limit is higher than the fit says."""
        assert self.fit is not None
        middle = self.fit.rates[2]
        # Beyond twice the rate, first see that no bucket can still be paying for it.
        is_paid = self._over >= 1 and self._excess <= BUCKET_SECONDS * middle
        if self._stage >= max(STAGE, 2 * pace * latency, STAGE_SECONDS * pace) and not is_paid:
            self._stage = 0
            self._over *= 2
        self._excess += 1 - middle / pace
        return limit * (1 + self._over)
