"""One worker's part in a pace that several workers share through a ledger. Pure: it posts calls and hears replies.

**The rate is one, and one worker steers it.** Each worker notes what its host's pace is told (sent, served, dropped)
and tells the ledger with its next call. One of them, whichever asks first, is handed what all saw; an ordinary pace
hears it there in order of time, as if one process had sent everything, and says the rate for all. When that worker is
gone, after 4 s another begins with what the first had learned.

**A lease is a stretch of time**, a turn: 0.2 s at the rate, or one request where the rate is slow. Turns follow each
other, so everybody who wants to send gets the same, the sum is as even as one process would send, and nothing is
hoarded: what is not used is void a second after it was due, and a killed worker's turn passes by itself. When the rate
changes by much all are told, and draw together or apart what they hold (`told_rate`).

**The slots go with the turn.** How many may be open at once is the fleet's number; in its turn a worker may have that
many, growing as the requests of the turn before will end (`lease`). Off by one or two, and no call more.

**A refusal rests the fleet.** It voids all leases, is told to all at once, and afterwards one scout leaves, from a
worker that was refused. Until a worker has heard of the rest (a message), it may go on with the lease it holds.

**Without the ledger** a worker is alone (`alone`): it keeps to its share of what the host was known to bear; if that
never was known, its own pace begins from nothing.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from throttle.client.fleet.alone import pace_alone
from throttle.client.fleet.call import MICRO, Call, News, RateNews, Reply
from throttle.client.fleet.lease import LATE, Lease, LeaseBucket, Slots
from throttle.client.fleet.steering import BEAT_MAX, Steering
from throttle.client.fleet.told_rate import ToldRate
from throttle.client.learned import Learned, learned_by, start_from
from throttle.client.pace import Pace, rest_seconds
from throttle.client.pace.quota import QuotaPace
from throttle.rate_limit_fields import Quota

if TYPE_CHECKING:
    from throttle.client.host import Host

REPORT = 3.0
"""seconds after which what was seen is told, if no lease was wanted meanwhile"""
REST, REST_REQUESTS = 0.5, 1.5
"""a refusal without a wait told: so many seconds, and requests' time, until the steering pace has said it"""
STAND_IN = 1.0
"""seconds after a rest in which only who was refused asks to be the scout"""
RECENTLY = 1.0
"""a worker asks for as many requests as wait, or as it has sent in so many seconds"""
SLOWER, FASTER = 0.05, 0.3
"""what one answer weighs in the latency: the first ones, of a process that starts, are slow and are soon forgotten"""
SIGHTINGS_MAX = 1000


class SharedPace:
    """A `Pace` for a host, and its bucket. `own` makes a pace from nothing; `post` sends a call to the ledger and
    tells `answered` or `failed`; `look_at` calls `look` at that time.
    """

    capacity = 1.0
    catch_up = 0.0

    def __init__(
        self,
        host: str,
        worker: str,
        own: Callable[[], Pace],
        *,
        post: Callable[["SharedPace", Call], None],
        look_at: Callable[["SharedPace", float], None],
    ) -> None:
        self.name = host
        self.worker = worker
        self.workers = 1
        self._own = own
        self._post = post
        self._look_at = look_at
        first = own()
        self._rate = first.rate
        self._slots = first.in_flight_max
        self._first: Pace | None = first
        self._steering: Steering | None = None
        self._alone: Pace | None = None
        self._learned = learned_by(first).to_text()
        self._quota = QuotaPace()
        self._is_known = False  # the ledger has answered once
        self.bucket = LeaseBucket(self._rate, self._is_empty, self._slots_now)
        self.host: Host | None = None
        self._calling: Call | None = None
        self._is_urgent = False
        self._is_asked = False  # a request stands before the empty bucket
        self._not_before = float("-inf")  # asking for a lease is in vain
        self._told = ToldRate()
        self._era = -1
        self._called_era = -1
        self._row = 0
        self._was_resting = False
        self._was_refused = False  # since all last went on
        self._passed: int | None = None  # the rest that this worker's scout has ended, until the ledger says so, too
        self._sightings: list[list[Any]] = []
        self._drop: tuple[int, float, bool] | None = None
        self._latency = 0.0  # no answer yet
        self._sent_lately: deque[float] = deque(maxlen=1000)
        self._called_at = float("-inf")
        self._timer = float("inf")

    # -- the pace of this worker's host

    @property
    def rate(self) -> float:
        return self._rate if self._alone is None else self._alone.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._rate = rate

    @property
    def in_flight_max(self) -> float:
        return self._slots if self._alone is None else self._alone.in_flight_max

    @in_flight_max.setter
    def in_flight_max(self, slots: float) -> None:
        self._slots = slots

    def sent(self, now: float, height: int) -> None:
        if self._alone is not None:
            self._alone.sent(now, height)
            return
        self._is_asked = False
        if height >= int(self._slots):
            self.bucket.hold()
        self._sent_lately.append(now)
        self._see(["sent", now])
        self.look(now)

    def served(self, now: float, sent_at: float, height: int) -> None:
        if self._alone is not None:
            self._alone.served(now, sent_at, height)
            return
        latency = now - sent_at
        share = SLOWER if latency > self._latency else FASTER
        self._latency += share * (min(latency, 4 * self._latency) - self._latency) if self._latency else latency
        self._see(["served", now, round((now - sent_at) * MICRO)])
        self._timed(now)

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if self._alone is not None:
            return self._alone.dropped(now, sent_at, height, told, in_a_row)
        in_a_row = max(in_a_row, self._row + 1)
        rest = rest_seconds(told, in_a_row, first=max(REST, REST_REQUESTS / self._rate))
        self._see(["dropped", now, round((now - sent_at) * MICRO), told, in_a_row])
        self._drop = self._era, rest, told is not None
        self._is_urgent = self._was_refused = True
        self.look(now)
        return rest

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        if self._alone is not None:
            return self._alone.told(now, quota, in_flight)
        self._see(["told", now, quota.remaining, quota.seconds, quota.limit, quota.window_seconds, in_flight])
        self._quota.told(now, quota, in_flight)  # who steers hears it and says the rate; a rest cannot wait for that
        rest = self._quota.rest
        if rest > 0.0 and self._drop is None:
            self._drop = -1, rest, True
            self._is_urgent = self._was_refused = True
            self.look(now)
        self._timed(now)
        return rest

    @property
    def is_steering(self) -> bool:
        return self._steering is not None

    def learned(self) -> Learned:
        """For those who remember."""
        if self._steering is not None:
            return learned_by(self._steering.pace)
        return Learned.from_text(self._learned) or Learned(self._rate)

    # -- what is due

    def _slots_now(self) -> Slots:
        assert self.host is not None
        return Slots(self.host.in_flight.count, self._slots, self._latency)

    def _is_empty(self, now: float) -> None:
        self._is_asked = True
        self.look(now)

    def look(self, now: float) -> None:
        """Call the ledger, if there is a reason."""
        if self.host is None or self._calling is not None or self._alone is not None:
            return
        want = self._wanted(now)
        ended = self._has_passed()
        if not (want or self._is_urgent or ended or self._is_due(now)):
            self._timed(now)
            return
        steering = self._steering
        if steering is not None:
            steering.hear(now, self._called_at)
            self._rate, learned = steering.say()
            self._slots = steering.pace.in_flight_max
            self._learned = learned.to_text()
        call = Call(self.name, self.worker, want, now, self._sightings, ended_era=self._era if ended else -1)
        self._sightings = []
        if self._drop is not None:
            call.dropped_era, call.rest, call.is_told = self._drop
            self._drop = None
        call.is_steering, call.rate, call.slots = steering is not None, self._rate, self._slots
        call.learned = self._learned
        if steering is not None:
            call.rest_least, steering.rest_least = steering.rest_least, 0.0
        self._is_urgent = self._is_asked = False
        self._calling, self._called_at, self._called_era = call, now, self._era
        self._post(self, call)

    def _wanted(self, now: float) -> int:
        assert self.host is not None
        waiting = max(self.host.in_flight.waiting, int(self._is_asked))
        left = self.bucket.left(now)
        if waiting <= left:
            return 0
        if now < self._not_before or not self.bucket.is_soon_spent(now):
            return 0
        if self.host.breaker.is_resting and (now < self.host.breaker.rest_until or self.host.breaker.scout_is_out):
            return 0
        while self._sent_lately and self._sent_lately[0] <= now - RECENTLY:
            self._sent_lately.popleft()
        return max(waiting, len(self._sent_lately)) - left

    def _has_passed(self) -> bool:
        """The fleet's scout was this worker's and has passed the gate, and the ledger has not answered that."""
        assert self.host is not None
        was, self._was_resting = self._was_resting, self.host.breaker.is_resting
        if was and not self._was_resting:
            self._passed = self._era
        return self._passed == self._era

    def _is_due(self, now: float) -> bool:
        return now >= self._due_at()

    def _due_at(self) -> float:
        due = float("inf")
        if self._sightings:
            due = self._sightings[0][1] + REPORT
        if self._steering is not None:
            if not self._is_idle:
                due = min(due, self._called_at + max(self._steering.beat, min(BEAT_MAX, 1 / self._rate)))
            settles = self._steering.settles_at
            if settles is not None:
                due = min(due, max(settles, self._called_at + 0.01))
        return due

    @property
    def _is_idle(self) -> bool:
        return self.host is None or self.host.is_idle

    def _timed(self, now: float) -> None:
        """See that `look` is called when something is due."""
        due = self._due_at()
        is_wanted = self._is_asked or (self.host is not None and self.host.in_flight.waiting)
        if is_wanted and now < self._not_before:
            due = min(due, self._not_before)
        if due < self._timer - 1e-6:
            self._timer = due
            self._look_at(self, due)

    def timer(self, now: float) -> None:
        """`look_at` has come."""
        self._timer = float("inf")
        self.look(now)
        self._wake()

    def _see(self, sighting: list[Any]) -> None:
        if len(self._sightings) < SIGHTINGS_MAX:
            self._sightings.append(sighting)

    # -- what the ledger says

    def answered(self, reply: Reply, now: float) -> None:
        call, self._calling = self._calling, None
        if call is None or self._alone is not None:
            return
        self._is_known = True
        self.workers = reply.workers
        self._steer(reply, call.at, now)
        if not reply.steers or self._steering is None:
            self._rate, self._slots, self._learned = reply.rate, reply.slots, reply.learned
        self._hear_rate(reply.told_at, reply.told_rate, now)
        if reply.era < self._called_era:
            self._era = -1  # the server has lost its books, and counts anew
        if reply.era >= self._era:
            self._rest(reply.era, reply.row, reply.rest_left, now)
            self._take(reply, now, now - call.at)
        self.look(now)
        self._timed(now)
        self._wake()

    def _take(self, reply: Reply, now: float, took: float) -> None:
        if reply.count:
            lease = Lease(now + reply.start, reply.gap, reply.count, max(0.0, LATE - took), reply.follows)
            if reply.told_at < self._told.at:  # another rate was told while the answer was under way
                lease.stretch(now, reply.told_rate / self._told.rate)
            self.bucket.grant(lease)
        elif reply.ask_again:
            self._not_before = now + reply.ask_again + self._stands_back(reply.rest_left)

    def _steer(self, reply: Reply, asked_at: float, now: float) -> None:
        if not reply.steers:
            self._steering = None
            return
        if self._steering is None:
            pace = self._first or self._own()
            self._first = None
            known = Learned.from_text(reply.learned)
            if known is not None:
                start_from(pace, known)
            self._steering = Steering(pace)
        was_settling = self._steering.settles_at is not None
        self._steering.note(now, reply.seen)
        self._steering.hear(now, asked_at)
        self._rate, self._slots = self._steering.rate, self._steering.pace.in_flight_max
        if was_settling and self._steering.settles_at is None:
            self._is_urgent = True  # the rest and the rate, before anybody sends again

    def heard(self, news: News | RateNews, now: float) -> None:
        """A message to all workers."""
        if self._alone is not None:
            return
        if isinstance(news, RateNews):
            self._hear_rate(news.told_at, news.rate, now)
            self._wake()
            return
        if news.era < self._era:
            return
        self._rest(news.era, news.row, news.rest, now)
        self._not_before = now + (news.rest or 0.0) + self._stands_back(news.rest)
        # What led to the refusal is told at once, and who steers comes for it.
        self._is_urgent |= news.rest is not None and any(kind == "sent" for kind, *_ in self._sightings)
        self.look(now)
        self._timed(now)
        self._wake()

    def _stands_back(self, rest: float | None) -> float:
        """Seconds for which this worker leaves the scout to those who were refused: not all need ask."""
        if rest is None:
            self._was_refused = False
        return 0.0 if rest is None or self._was_refused else STAND_IN

    def _hear_rate(self, told_at: int, rate: float, now: float) -> None:
        """All were told another rate: what this worker holds is drawn together, or apart, as the ledger's books are."""
        factor = self._told.hear(told_at, rate)
        if factor is None:
            return
        self.bucket.stretch(now, factor)
        if self._steering is None:
            self._rate = rate

    def _rest(self, era: int, row: int, rest: float | None, now: float) -> None:
        """The fleet rests, for `rest` seconds more or until a scout has passed; or (None) it does not."""
        assert self.host is not None
        if self._has_passed() and era == self._era:
            return  # a call that was under way when the scout passed: the ledger did not know
        is_new, self._era, self._row = era > self._era, era, row
        breaker = self.host.breaker
        if rest is None:
            if breaker.is_resting and self._drop is None:
                self.host.told_to_go_on()
                self._was_resting = False
        elif is_new or not breaker.is_resting or breaker.rest_until < now + rest:
            self.host.told_to_rest(now, rest, is_cut=is_new)
            self._was_resting = True

    # -- without the ledger

    def failed(self, now: float) -> None:
        """The ledger is lost."""
        self._calling = None
        if self._alone is not None:
            return
        if self._is_known:
            self._alone = pace_alone(self._told.borne(self._learned), self._slots, self.workers)
        else:
            self._alone = self._first or self._own()
        self._first = self._steering = None
        self._sightings.clear()
        self._drop = None
        self.bucket.drain(now)
        self.bucket.be_alone(self._alone.rate, now)
        self._wake()

    def back(self, now: float) -> None:
        """The ledger answers again."""
        if self._alone is None:
            return
        self._alone = None
        self.bucket.alone = None
        self._not_before = float("-inf")
        self._era = -1
        self.look(now)
        self._wake()

    def bye(self, now: float) -> Call:
        """The last call."""
        return Call(self.name, self.worker, -1, now, self._sightings, rate=self._rate, slots=self._slots)

    def _wake(self) -> None:
        if self.host is not None and self.host.in_flight.waiting:
            self.host.in_flight.wake_next()
