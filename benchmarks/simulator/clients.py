"""Who sends: our flow, which is the code that runs in production, or a limiter of other people's making."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import Reply, SimulatedHost
from throttle.client.answer import Answer
from throttle.client.exchange import Done, Flow, GiveUp, Send, Step, Wait, exchange
from throttle.client.host import Host

TASKS = 64


@dataclass(slots=True)
class Log:
    """Of each request that landed: when sent, when landed, whether served."""

    sent: list[float] = field(default_factory=list)
    landed: list[float] = field(default_factory=list)
    served: list[bool] = field(default_factory=list)

    def note(self, sent: float, landed: float, served: bool) -> None:
        self.sent.append(sent)
        self.landed.append(landed)
        self.served.append(served)


class Work:
    """How many requests are wanted: endless, or in pieces that come at given times."""

    def __init__(self, pieces: list[tuple[float, int]] | None = None) -> None:
        self.pieces = pieces

    def start(self, clockwork: Clockwork, start: float, add: Callable[[int], None]) -> None:
        if self.pieces is None:
            clockwork.at(start, add, 1 << 60)
            return
        for time, count in self.pieces:
            clockwork.at(time, add, count)


class FlowClient:
    """`TASKS` tasks, each one exchange after another, driven like a transport drives them."""

    def __init__(
        self,
        clockwork: Clockwork,
        site: SimulatedHost,
        host: Host,
        caller: int,
        work: Work,
        start: float = 0.0,
        late: Callable[[], float] = float,
    ) -> None:
        self.clockwork = clockwork
        self.site = site
        self.host = host
        self.late = late  # seconds by which a wait ends later than wished; a simulation's own ends in time
        self.caller = caller
        self.log = Log()
        self.wanted = 0
        self.idle = [_Task(self) for _ in range(TASKS)]
        work.start(clockwork, start, self.add)

    def add(self, count: int) -> None:
        self.wanted += count
        while self.idle and self.wanted > 0:
            self.wanted -= 1
            self.idle.pop().begin()


class _Task:
    __slots__ = ("client", "flow", "sent_at", "turn")

    flow: Flow

    def __init__(self, client: FlowClient) -> None:
        self.client = client
        self.turn = 0  # a timer of an earlier turn is stale
        self.sent_at = 0.0

    def begin(self) -> None:
        client = self.client
        self.flow = exchange(client.host, self.wake, client.clockwork.now)
        self.follow(next(self.flow))

    def wake(self) -> None:
        clockwork = self.client.clockwork
        clockwork.at(clockwork.now, self.resume, self.turn)

    def resume(self, turn: int) -> None:
        if turn == self.turn:
            self.follow(self.flow.send(self.client.clockwork.now))

    def follow(self, step: Step) -> None:
        self.turn += 1
        client = self.client
        if isinstance(step, Send):
            self.sent_at = client.clockwork.now
            client.site.send(client.caller, self.landed)
        elif isinstance(step, Wait):
            client.clockwork.after(step.seconds + client.late(), self.resume, self.turn)
        elif isinstance(step, GiveUp):
            self.flow.close()
        elif isinstance(step, Done):
            client.host.release(step.place)
            self.flow.close()
            if client.wanted > 0:
                client.wanted -= 1
                client.clockwork.at(client.clockwork.now, self.begin)
            else:
                client.idle.append(self)

    def landed(self, reply: Reply) -> None:
        now = self.client.clockwork.now
        self.client.log.note(self.sent_at, now, reply.status == 200)
        self.follow(self.flow.send(Answer(now, reply.status, reply.retry_after, reply.quota)))


class Limiter(Protocol):
    """Another client's way to hold itself back."""

    def ready_at(self, now: float, in_flight: int) -> float:
        """When the next request may leave; infinity: after the next answer."""

    def sent(self, now: float) -> None: ...

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        """Seconds for which the task that got it sleeps before it takes up the next."""


class LimiterClient:
    """`TASKS` tasks behind one limiter; who was refused asks again."""

    def __init__(
        self, clockwork: Clockwork, site: SimulatedHost, limiter: Limiter, caller: int, work: Work, start: float = 0.0
    ) -> None:
        self.clockwork = clockwork
        self.site = site
        self.limiter = limiter
        self.caller = caller
        self.log = Log()
        self.wanted = 0
        self.in_flight = 0
        self.free = TASKS
        self.timer = 0
        work.start(clockwork, start, self.add)

    def add(self, count: int) -> None:
        self.wanted += count
        self.look(self.timer)

    def look(self, timer: int) -> None:
        if timer != self.timer:
            return
        self.timer += 1
        now = self.clockwork.now
        while self.wanted > 0 and self.free > 0:
            ready = self.limiter.ready_at(now, self.in_flight)
            if ready > now:
                if ready != float("inf"):
                    self.clockwork.at(ready + 1e-9, self.look, self.timer)
                return
            self.limiter.sent(now)
            self.wanted -= 1
            self.free -= 1
            self.in_flight += 1
            self.site.send(self.caller, _landing(self, now))

    def landed(self, sent_at: float, reply: Reply) -> None:
        now = self.clockwork.now
        self.in_flight -= 1
        served = reply.status == 200
        self.log.note(sent_at, now, served)
        if not served:
            self.wanted += 1
        self.clockwork.after(self.limiter.answered(now, sent_at, reply), self.freed)
        self.look(self.timer)

    def freed(self) -> None:
        self.free += 1
        self.look(self.timer)


def _landing(client: LimiterClient, sent_at: float) -> Callable[[Reply], None]:
    return lambda reply: client.landed(sent_at, reply)


Client = FlowClient | LimiterClient
