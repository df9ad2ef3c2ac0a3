"""The default pace: finds a limit that nobody tells, and is hardly ever refused.

It goes on in one of five ways, each in a file of its own but the first:

seek      nothing is known: start low, double every few requests until a refusal comes
hold      a bucket was fitted to what was accepted and refused (`hold`, `bucket_fit`)
window    the refusal told a countdown: what was accepted until its end is what a window holds (`window`)
share     no bucket explains the refusals, others draw from it, too: grow evenly, cut at each (`share`)
quota     the host tells RateLimit fields: obey instead of guessing (`quota`)

How many may be open at once is found apart from all this (`latency_limit`), and a slow limit is doubted (`doubt`).
Constants count requests wherever they can, since seconds mean little without a rate.
"""

from math import ceil
from random import Random

from throttle.client.learned import Learned
from throttle.client.pace import rest_seconds
from throttle.client.pace.bucket_fit import Epoch, Fit
from throttle.client.pace.doubt import Doubt
from throttle.client.pace.hold import HoldPace
from throttle.client.pace.latency_limit import LatencyLimit
from throttle.client.pace.quota import QuotaPace
from throttle.client.pace.send_log import SendLog
from throttle.client.pace.share import SharePace
from throttle.client.pace.window import WindowPace
from throttle.rate_limit_fields import Quota

# Seek: the rate doubles after so many requests, and never before the answers at this rate are in.
DOUBLE_AFTER = 3
# Where a slow limit was none, it seeks anew, from no less than so many a second.
LEAST_SOUGHT = 1.0
# Beyond SOON a second it is never more than SENT_SHARE of all that was sent, a second: when a quota is spent, what is
# in flight is refused, too, and that is the larger a share the fewer were sent.
SOON, SENT_SHARE = 16.0, 0.7
# Requests in the time of one answer while they are to go one at a time.
ALONE = 0.9
# Who counts answers at once. What took so many seconds, and latencies, waited for room: if it was refused, that was of
# load and not of our pace; if it was served, the host counted it when it woke.
SLOW, SLOW_LATENCIES = 2.0, 5.0
# A first refusal without a wait told: so many seconds, and requests' time. A host shut longer than OUTAGE, and not
# at the first refusal, was out: that says nothing of the limit.
REST, REST_REQUESTS, SHUT, OUTAGE = 0.3, 1.5, 3.0, 20.0
# A wait that ended so many seconds late is made good: event loops are late by milliseconds at each turn, and by tens of
# them on a busy machine, which would take 15 % of 8 a second. No more of it than this share of what the host's bucket
# is believed to hold beyond one token.
LATE_SECONDS, LATE_SHARE = 0.1, 0.5
# Under a limit that is known no more are open than the pace needs when answers take so many times as long as usual. One
# that takes longer sleeps for want of room, or is lost: to send others after it would let them be refused together.
# A pace that goes on needs a slot for 1 ÷ LATENCIES of the time, so no more of it is lost to answers that are long.
LATENCIES = 8.0
# Above so many a second the rate is worked out anew with each eighth request: it changes little with one.
BRISK, EACH = 40.0, 8


class SeekingPace:
    """`rate` at first, within `rate_min` and `rate_max`; at most `in_flight_max` at once."""

    capacity = 1.0
    catch_up = 0.0

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
        self._random = random
        self._slots = LatencyLimit(4, in_flight_max)
        self.in_flight_max: float = self._slots.limit
        self._log = SendLog()
        self._hold = HoldPace()
        self._window = WindowPace()
        self._share = SharePace()
        self._quota = QuotaPace()
        self._latency = 0.1
        self._served = 0
        self._height = 0  # requests that were open when the last one left
        self._has_slept = False  # the last that was served waited for room
        self._is_full = False  # the next is the first after a rest for load: the plan goes on, the bucket is full
        self._doubt = Doubt()
        self._sent = 0  # since the last refusal of the pace
        self._held_back: float | None = None  # the rate, while one request leaves later than it says
        self._unanswered = 0  # … of which so many have no answer; the others' bodies are being read
        self._refusals = 0
        self._is_rested = True  # the next request is the first after a rest
        self._on_time = 0  # requests that left when the pace let them, since it last doubled
        self._slot_epoch: Epoch | None = None  # what led to a refusal that was taken for one of slots
        self._dropped_at = 0.0
        self._scouts = 0  # that were refused since
        self._lock_out: float | None = None  # seconds for which a refusal shuts the host, as scouts have found

    # -- hearing

    def sent(self, now: float, height: int) -> None:
        self._height = height
        self._unanswered = min(self._unanswered + 1, height)
        gap = min(now - self._log.last, 60.0)
        is_late = is_on_time = False
        if self._is_rested:
            self._begin(now)
            gap = 0.0  # it is counted as the rest
        elif self._is_full:
            self._is_full = False
            self._log.begin(now, None)
        elif self._slots.sent(height) and self.rate * self._latency > 2 * self.in_flight_max:
            pass  # the slots hold it back, and a faster pace would change nothing
        elif gap > (1.5 + self.catch_up) / self.rate + 0.01:
            is_late = True  # nothing was wanted for a while
        else:
            is_on_time = True
        self._on_time += is_on_time
        self._sent += 1
        self._hold.sent(gap, is_on_time)
        self._quota.sent()
        self._log.send(now, self.rate, is_late)
        self._window.sent(now, self._sent)
        self._go_on()
        if self._has_slept:
            # A token was saved meanwhile, so this one left right after the one that slept: the next is to leave later.
            self._has_slept, self._held_back = False, self.rate
            self.rate = max(self.rate_min, self.rate / 2)
            self._limit_slots()
        elif self.rate <= BRISK or self._log.sent % EACH == 0 or self._log.sent == 1:
            self._steer(now, 0.0 if is_late else gap * (EACH if self.rate > BRISK else 1))

    def served(self, now: float, sent_at: float, height: int) -> None:
        self._served += 1
        self._has_slept |= self._is_slow(now - sent_at)
        self._unanswered = max(0, self._unanswered - 1)
        self._latency += 0.05 * (min(now - sent_at, 4 * self._latency) - self._latency)
        if self._scouts:
            self._reopened(sent_at - self._dropped_at)
        self._slots.served(now, sent_at, height)
        self._limit_slots()

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if in_a_row > 1:
            return self._scout_dropped(told, in_a_row)
        self._unanswered = max(0, self._unanswered - 1)
        if told is not None and self._is_slow(now - sent_at):
            self._is_full = True
            return told
        self._is_rested = True
        self._go_on()
        self._refusals += 1
        self._dropped_at = sent_at
        if self._doubt.is_confirmed(self._sent):
            self._refusals += 1  # it was bought beside the plan: the next is earned later
            return told if told is not None else max(REST, REST_REQUESTS / self.rate)
        epoch = self._log.epoch(sent_at, told)
        if told is None and self._slots.refused(now, height, self._hold.is_known):
            self._slots_are_full(epoch)
            return self._latency
        if self._slot_epoch is not None:
            self._limit_slots()
            if self._slots.was_wrong:
                self._hold.remember(self._slot_epoch)
            self._slot_epoch = None
        accepted = round(sum(requests for _, requests in epoch.pieces))
        if self._window.refused(now, told, self.rate, accepted):
            assert told is not None
            self._hold.forget()
            return told
        return self._refused(epoch, told)

    def _go_on(self) -> None:
        """At the rate before the one request that was held back."""
        if self._held_back is not None:
            self.rate, self._held_back = self._held_back, None

    def _is_slow(self, seconds: float) -> bool:
        """Who counts answers at once. One that takes so long waited for room."""
        return seconds > max(SLOW, SLOW_LATENCIES * self._latency)

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        self._quota.told(now, quota, in_flight)
        self._steer(now, 0.0)
        return self._quota.rest

    # -- what outlives it

    def learned(self) -> Learned:
        """The bucket that was fitted, or the rate that is held without one."""
        fit = self._hold.fit
        if fit is None or self._share.is_sharing:
            return Learned(self.rate)
        return Learned(fit.rates[2], fit.rates[0], fit.rates[4], fit.burst)

    def recall(self, learned: Learned) -> None:
        """Begin with it: hold the limit that was met, or seek from the rate that was borne."""
        self.rate = max(self.rate_min, min(self.rate_max, learned.rate))
        if learned.is_limit:
            self._hold.recall_fit(learned.rate, learned.low, learned.high, learned.burst)

    # -- what a refusal teaches

    def _refused(self, epoch: Epoch, told: float | None) -> float:
        self._hold.refused(epoch, self._sent, self._share.is_sharing)
        assert self._hold.fit is not None
        rest = told
        if rest is None:
            rest = self._lock_out or max(REST, REST_REQUESTS / self._hold.fit.rates[2])
        self._doubt.fitted(self._hold.fit, told, self._refusals)
        self._hold.make_plan(rest, self._refusals, self._served, self._random.random())
        is_strange = self._hold.is_strange or self._hold.is_in_vain
        rate = self._share.refused(self.rate, is_strange, self._hold.is_settled, self._hold.fit.rates[2])
        if rate is not None:
            self.rate = max(self.rate_min, rate)
        return rest

    def _scout_dropped(self, told: float | None, in_a_row: int) -> float:
        self._scouts += 1
        if self._slot_epoch is not None:  # even one alone was refused: that was no matter of slots
            self._slots.retract()
            self._limit_slots()
            epoch, self._slot_epoch, self._scouts = self._slot_epoch, None, 0
            return self._refused(epoch, None)
        rest = rest_seconds(told, in_a_row, first=REST)
        return rest if told is not None else rest * self._random.uniform(0.95, 1.05)

    def _slots_are_full(self, epoch: Epoch) -> None:
        self._limit_slots()
        self._slot_epoch = epoch
        if self._slots.is_proven:
            self._hold.forget()  # it was slots all the time, and no bucket

    def _reopened(self, seconds: float) -> None:
        """Scouts were refused, and one is served."""
        self._scouts = 0
        if seconds > SHUT:  # company would have left something to the scouts
            self._share.recall()
        if seconds <= OUTAGE or self._lock_out is not None or not self._hold.recall():
            self._lock_out = seconds
            if seconds > SHUT and self._hold.fit is not None:  # the plan was made for a short rest
                self._hold.make_plan(seconds, self._refusals, self._served, self._random.random())

    # -- saying

    def _begin(self, now: float) -> None:
        """The first request after a rest."""
        self._is_rested = self._is_full = False
        self._on_time = self._sent = 0
        rest = now - self._log.last if self._refusals else None
        self._log.begin(now, rest)
        self._window.begin(now)
        self._hold.begin(rest or 0.0)

    def _steer(self, now: float, gap: float) -> None:
        if self._quota.is_told(now):
            rate = self._quota.rate(now)
        elif self._window.rate is not None:
            rate = self._window.rate
        elif self._share.is_sharing:
            rate = self._share.rate(self.rate, gap)
        elif self._hold.fit is not None:
            rate = self._hold_or_doubt(self._hold.fit)
        else:
            rate = self._seek()
        if self._window.is_near:
            rate = min(rate, ALONE / self._latency)
        self.rate = max(self.rate_min, min(self.rate_max, rate))
        self.catch_up = self._catch_up(now)
        self._limit_slots()

    def _hold_or_doubt(self, fit: Fit) -> float:
        if self._doubt.is_right(self._sent):
            self._hold.forget()
            self._on_time = 0
            return max(fit.rates[2], LEAST_SOUGHT)
        return self._doubt.rate(self._hold.rate(self.rate, self._latency), self._sent)

    def _limit_slots(self) -> None:
        """What is read just now is not counted: of an answer that has come it is known that nothing sleeps."""
        limit = self._slots.limit
        if self._hold.fit is not None or self._window.rate is not None or self._quota.was_told:
            unanswered_max = ceil(LATENCIES * self.rate * self._latency)
            limit = min(limit, unanswered_max + self._height - self._unanswered)
        self.in_flight_max = limit

    def _catch_up(self, now: float) -> float:
        """Tokens that may leave at once to make good for lateness; none while no burst is known that bears them.

        A quota's rate makes up for it by itself, and of a bucket that others draw from too little is known.
        """
        if self._quota.is_told(now):
            return 0.0
        late = LATE_SECONDS * self.rate
        if self._window.rate is not None:
            return late
        if self._hold.fit is None or self._share.is_sharing:
            return 0.0
        return max(0.0, min(late, LATE_SHARE * (self._hold.fit.burst - 1.0)))

    def _seek(self) -> float:
        if self._on_time < max(DOUBLE_AFTER, 2 * self.rate * self._latency):
            return self.rate
        self._on_time = 0
        return max(self.rate, min(2 * self.rate, max(SOON, SENT_SHARE * self._log.sent)))
