"""All that is known of one host: bucket, slots, breaker, retry budget, and the pace that sets the first two.

No request leaves but through `ask()`, and every one that leaves comes back through `answered()` or `lost()`, and
`release()`. Not thread-safe: a driver with threads holds `lock` around each call.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import RLock

from throttle.client.answer import FAILED_IN_A_ROW_MAX, Answer, Ending, Failure
from throttle.client.backoff import Backoff
from throttle.client.circuit_breaker import CircuitBreaker, State
from throttle.client.events import Answered, Dropped, Event, GaveUp, RateChanged, Rested, Retried, Stopped, Waited
from throttle.client.fleet.lease import LeaseBucket
from throttle.client.in_flight import InFlightLimit, Waiter
from throttle.client.pace import Pace
from throttle.client.retry_budget import RetryBudget
from throttle.client.soft_block import soft_block_reason
from throttle.client.token_bucket import TokenBucket
from throttle.rate_limit_fields import Quota

logger = logging.getLogger("throttle.client")

# A rate change worth telling.
RATE_TOLD = 0.1
# Jitter on a told wait only ever lengthens it: this share of it, at most so many seconds.
TOLD_JITTER, TOLD_JITTER_MAX = 0.05, 0.5


SERVED = Ending.SERVED  # looking a member up takes as long as five comparisons, on the way of each request
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})  # RFC 9110, 9.2.2


@dataclass(frozen=True, slots=True)
class Politeness:
    """What is the same for every host."""

    backoff: Backoff = field(default_factory=Backoff)
    wait_max: float = 300.0  # seconds; a host that asks for more makes its requests fail at once, told how long
    turn_max: float = float("inf")  # seconds that one request may wait for its turn; then it fails
    retry_methods: frozenset[str] = IDEMPOTENT  # what may be sent twice; the backoff says how often
    wall_after: int = 10  # refusals in a row, with nothing ever served, are a wall
    is_block: Callable[[Answer], bool] | None = None  # the caller's own eye for a block; of 4xx and 5xx it sees a body
    latencies_kept: int = 200


@dataclass(frozen=True, slots=True)
class HostStats:
    rate: float
    in_flight: int
    in_flight_max: int
    waiting: int
    resting: State
    p50: float | None
    p95: float | None
    statuses: dict[str, int]
    drops: int
    retries: int


class Place:
    """One request's place among those that are open: from `ask()` to `release()`."""

    __slots__ = ("height", "is_scout", "is_told", "sent_at")

    def __init__(self, sent_at: float, height: int, is_scout: bool) -> None:
        self.sent_at = sent_at
        self.height = height
        self.is_scout = is_scout
        self.is_told = False  # how it ended is known


class Host:
    """`name` is for people; the pace belongs to this host alone."""

    def __init__(
        self,
        name: str,
        pace: Pace,
        now: float,
        random: Random,
        *,
        bucket: LeaseBucket | None = None,
        politeness: Politeness | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.name = name
        self.lock = RLock()  # a listener may ask for stats
        self.pace = pace
        self.random = random
        self.politeness = politeness or Politeness()
        self.bucket: TokenBucket | LeaseBucket = bucket or TokenBucket(pace.rate, pace.capacity, now, pace.catch_up)
        self.in_flight = InFlightLimit(pace.in_flight_max)
        self.breaker = CircuitBreaker()
        self.retry_budget = RetryBudget(now)
        self.stopped: str | None = None  # why nothing more is sent
        self.filed_until = float("-inf")  # whose table it is in looks no sooner whether it still is (`hosts`)
        self._on_event = on_event
        self._cut_at = float("-inf")  # when the last first refusal of a series was read
        self._drops_in_a_row = 0
        self._failures_in_a_row = 0
        self.has_served = False
        self._rate_told = pace.rate
        self._latencies: deque[float] = deque(maxlen=self.politeness.latencies_kept)
        self._statuses: Counter[int | Failure] = Counter()
        self._drops = 0
        self._retries = 0

    # -- before a request leaves

    def place_at_once(self, now: float) -> Place | None:
        """A place for a new request when nobody waits, nothing rests, and slot and token are there, as mostly.

        Else it goes through an `exchange`. This, `served` and `release` are all of the way that most requests go.
        """
        slots, bucket = self.in_flight, self.bucket
        if (
            self.breaker.is_resting
            or self.stopped is not None
            or slots.waiters
            or slots.count + 1 > slots.limit
            or bucket.seconds_until_token(now) > 0.0
        ):
            return None
        bucket.take()
        slots.count = height = slots.count + 1
        self.retry_budget.earn()
        self.pace.sent(now, height)
        self._obey_pace(now)
        return Place(now, height, False)

    def ask(self, waiter: Waiter | None, now: float) -> Place | float:
        """A place; or the seconds until it is worth asking again, infinity for «when woken».

        A waiter that got seconds may be woken sooner, and asks again then too. Without one, nobody joins the queue.
        """
        slots, breaker, bucket = self.in_flight, self.breaker, self.bucket
        height = slots.count + 1
        if not slots.is_next(waiter):
            wait = float("inf")
        elif breaker.is_resting and (wait := breaker.seconds_until_pass(now, height - 1)) > 0.0:
            bucket.is_awaited = False  # nobody is late for a rest's end
        else:
            # The slot first: a token taken while waiting for a slot is stale, and lets a burst out later.
            is_full = slots.is_full()
            wait = float("inf") if is_full else bucket.seconds_until_token(now)
            bucket.is_awaited = not is_full and waiter is not None
        if wait > 0.0:
            if waiter is not None:
                slots.join(waiter)
            return wait
        bucket.take()
        slots.take(waiter)
        bucket.is_awaited = slots.waiting > 0
        is_scout = breaker.is_resting
        if is_scout:
            breaker.send_scout()
        self.pace.sent(now, height)
        self._obey_pace(now)
        return Place(now, height, is_scout)

    def leave(self, waiter: Waiter) -> None:
        """A waiter that was cancelled or gave up: its turn is the next one's."""
        self.in_flight.leave(waiter)
        if not self.in_flight.waiting:
            self.bucket.is_awaited = False

    def rest_left(self, now: float) -> float:
        """Seconds for which nothing may be sent."""
        return max(0.0, self.breaker.rest_until - now) if self.breaker.is_resting else 0.0

    def told_to_rest(self, now: float, seconds: float, *, is_cut: bool) -> None:
        """Another worker of the fleet was refused. `is_cut`: what left before now and is refused is old news."""
        if is_cut:
            self._cut_at = now
            self.bucket.drain(now)
            self._tell(Rested(self.name, now, seconds))
        self.breaker.rest(now + seconds)

    def told_to_go_on(self) -> None:
        """Another worker's scout has passed the gate."""
        self.breaker.scout_served()
        self.in_flight.wake_next()

    def give_back(self, place: Place) -> None:
        """A place that was not used: a cache had the answer, or nothing was left to ask."""
        if not place.is_told:
            self.bucket.give_back()
        self.release(place)

    def waited(self, now: float, seconds: float) -> None:
        if self._on_event is not None:
            self._on_event(Waited(self.name, now, seconds))

    def gave_up(self, now: float, seconds: float, reason: str) -> None:
        """A request that had waited so long will never be sent."""
        if self._on_event is not None:
            self._on_event(GaveUp(self.name, now, reason, seconds))

    # -- how it ended

    def served(self, place: Place, now: float, status: int | Failure, quota: Quota | None = None) -> None:
        """The host bears this pace. Most answers tell nothing else (`told.tells_nothing`), and come here at once."""
        self._statuses[status] += 1
        self._failures_in_a_row = 0
        self.has_served = True
        place.is_told = True
        if place.is_scout or not self.breaker.is_resting:
            self._drops_in_a_row = 0
        self._latencies.append(now - place.sent_at)
        self.pace.served(now, place.sent_at, place.height)
        if place.is_scout:
            self._reopen()
        if quota is not None:
            self._told(now, quota)
        self._obey_pace(now)
        if self._on_event is not None:
            self._tell_answered(place, now, status, SERVED)

    def answered(self, place: Place, answer: Answer) -> Ending:
        """The three endings of a place: served, dropped, or neither."""
        now = answer.at
        ending = self._ending(answer)
        if ending is SERVED:
            self.served(place, now, answer.status, answer.quota)
            return ending
        self._statuses[answer.status] += 1
        place.is_told = True
        if ending is Ending.DROPPED:
            self._dropped(place, answer)
        elif place.is_scout:  # a 404 has passed the gate as well as a page
            self._reopen()
        if answer.quota is not None:
            self._told(now, answer.quota)
        self._obey_pace(now)
        if self._on_event is not None:
            self._tell_answered(place, now, answer.status, ending)
        return ending

    def lost(self, place: Place) -> None:
        """Cancelled, or ended by an error of ours: nothing is learned."""
        if not place.is_told:
            place.is_told = True
            if place.is_scout:
                self.breaker.scout_lost()

    def release(self, place: Place) -> None:
        """The body is read or closed. What never was answered is lost."""
        if not place.is_told:
            self.lost(place)
        self.in_flight.release()

    def may_retry(self, now: float) -> bool:
        if not self.retry_budget.spend(now):
            return False
        self._retries += 1
        if self._on_event is not None:
            self._on_event(Retried(self.name, now))
        return True

    def stats(self, now: float) -> HostStats:
        ordered = sorted(self._latencies)
        return HostStats(
            rate=self.pace.rate,
            in_flight=self.in_flight.count,
            in_flight_max=int(self.in_flight.limit),
            waiting=self.in_flight.waiting,
            resting=self.breaker.state(now),
            p50=ordered[len(ordered) // 2] if ordered else None,
            p95=ordered[int(len(ordered) * 0.95)] if ordered else None,
            statuses={_name(status): count for status, count in self._statuses.items()},
            drops=self._drops,
            retries=self._retries,
        )

    @property
    def answers(self) -> int:
        """Refusals, errors and time-outs included."""
        return self._statuses.total()

    @property
    def drops(self) -> int:
        return self._drops

    @property
    def has_answered(self) -> bool:
        """Anything at all, a refusal too."""
        return any(not isinstance(status, Failure) for status in self._statuses)

    @property
    def is_idle(self) -> bool:
        return not self.in_flight.count and not self.in_flight.waiting

    # -- inside

    def _ending(self, answer: Answer) -> Ending:
        ending = answer.ending
        if answer.headers or self.politeness.is_block is not None:
            reason = self._block_reason(answer)
            if reason is not None:
                self.stop(answer.at, reason)
                return Ending.NEUTRAL
        if ending is Ending.FAILED:
            self._failures_in_a_row += 1
            return Ending.DROPPED if self._failures_in_a_row >= FAILED_IN_A_ROW_MAX else Ending.NEUTRAL
        return ending

    def _told(self, now: float, quota: Quota) -> None:
        rest = self.pace.told(now, quota, self.in_flight.count - 1)
        if rest > 0.0:
            self._rest(now, rest)

    def _tell_answered(self, place: Place, now: float, status: int | Failure, ending: Ending) -> None:
        assert self._on_event is not None
        self._on_event(Answered(self.name, now, _name(status), ending.value, now - place.sent_at))

    def _reopen(self) -> None:
        self.breaker.scout_served()
        self.in_flight.wake_next()

    def _dropped(self, place: Place, answer: Answer) -> None:
        now, told = answer.at, answer.retry_after
        self._drops += 1
        self._tell(Dropped(self.name, now, _name(answer.status), answer.retry_after))
        if told is not None:
            told += self.random.uniform(0.0, min(TOLD_JITTER * told, TOLD_JITTER_MAX))
        if place.is_scout:
            self.breaker.scout_dropped()
        if place.sent_at <= self._cut_at:
            # It left before the cut: old news, but a longer wait told is still a wait told.
            if told is not None and self.breaker.is_resting:
                self._rest(now, told)
            return
        self._cut_at = now
        self._drops_in_a_row += 1
        seconds = self.pace.dropped(now, place.sent_at, place.height, told, self._drops_in_a_row)
        self._rest(now, seconds)
        self.bucket.drain(now)
        if not self.has_served and self._drops_in_a_row >= self.politeness.wall_after:
            self.stop(now, f"{self._drops_in_a_row} refusals in a row and nothing ever served")

    def _rest(self, now: float, seconds: float) -> None:
        """Told when it is news: nothing rested, or not for so long."""
        until = self.breaker.rest_until if self.breaker.is_resting else now
        self.breaker.rest(now + seconds)
        if self.breaker.rest_until > until:
            self._tell(Rested(self.name, now, seconds))

    def _block_reason(self, answer: Answer) -> str | None:
        if isinstance(answer.status, Failure):
            return None
        if self.politeness.is_block is not None and self.politeness.is_block(answer):
            return "by the caller's own rule"
        return soft_block_reason(answer.status, answer.headers, answer.body) if answer.headers else None

    def stop(self, now: float, reason: str) -> None:
        """Nothing more is sent; who waits is told why."""
        if self.stopped is None:
            self.stopped = reason
            self._tell(Stopped(self.name, now, reason))
        self.in_flight.wake_next()  # each that gives up wakes the next

    def _obey_pace(self, now: float) -> None:
        pace, bucket = self.pace, self.bucket
        rate = pace.rate
        if rate != bucket.rate or pace.capacity != bucket.capacity or pace.catch_up != bucket.catch_up:
            is_faster = rate > bucket.rate * (1 + RATE_TOLD)
            bucket.change(rate, pace.capacity, now, pace.catch_up)
            if is_faster and self.in_flight.waiting:
                self.in_flight.wake_next()  # its timer was set for the old rate
            if abs(rate - self._rate_told) > RATE_TOLD * self._rate_told:
                self._tell(RateChanged(self.name, now, self._rate_told, rate))
                self._rate_told = rate
        if pace.in_flight_max != self.in_flight.limit:
            is_wider = pace.in_flight_max > self.in_flight.limit
            self.in_flight.limit = pace.in_flight_max
            if is_wider and self.in_flight.waiting:
                self.in_flight.wake_next()

    def _tell(self, event: Event) -> None:
        logger.info("%s", event)
        if self._on_event is not None:
            self._on_event(event)


def _name(status: int | Failure) -> str:
    return status.value if isinstance(status, Failure) else str(status)
