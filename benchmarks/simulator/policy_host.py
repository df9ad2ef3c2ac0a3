"""Our own server half as a simulated host: the very policy and store that decide in production."""

from collections.abc import Callable, Sequence
from random import Random

from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import REFUSING, Reply, SimulatedHost
from throttle.rate_limit_fields import limit_value, policy_value, quota_told
from throttle.retry_after import whole_seconds
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Quota, Refused, Rule, Served
from throttle.server.sleepers import Sleeper
from throttle.server.stores.memory import MemoryStore


class PolicyHost(SimulatedHost):
    """Every caller is of one class; `crowds` are (start, end): people hold all places meanwhile.

    Needs a running event loop, in which sleepers' futures are made; none is awaited.
    """

    def __init__(
        self,
        clockwork: Clockwork,
        random: Random,
        caller_class: CallerClass,
        *,
        limits: Limits | None = None,
        fields: bool = False,
        crowds: Sequence[tuple[float, float]] = (),
    ) -> None:
        super().__init__(clockwork, random)
        self.limits = limits or Limits()
        self.fields = fields
        self.store = MemoryStore()
        rules = list(handle_request(caller_class, self.limits))
        self.policy_field = policy_value([rule for rule in rules if isinstance(rule, Rule)]).decode()
        self.prepared = self.store.prepare(rules, tells_quotas=fields)
        self.person = self.store.prepare(list(handle_request(CallerClass.BROWSER, self.limits)))
        for start, end in crowds:
            clockwork.at(start, self.crowd, start, end)

    def crowd(self, start: float, end: float) -> None:
        for person in range(self.limits.load_max):
            key = hash((start, person)) & 0xFFFFFFFF
            self.store.admit(self.person, (0, key, key), self.time(), 0)
            self.clockwork.at(end, self.store.release)

    def time(self) -> int:
        return round(self.clockwork.now * MICROSECONDS)

    def arrive(self, caller: int, landed: Callable[[Reply], None]) -> None:
        self.ask((0, caller + 1, caller + 1), landed, None, None)

    def ask(
        self, hashes: Hashes, landed: Callable[[Reply], None], sleeper: Sleeper | None, deadline: float | None
    ) -> None:
        verdict = self.store.admit(self.prepared, hashes, self.time(), 0, sleeper)
        now = self.clockwork.now
        if isinstance(verdict, Deferred):
            if deadline is None:
                deadline = now + self.limits.defer_delay.seconds(verdict.load)
            if now < deadline:
                # The middleware is woken by a future; a look every tenth of a second comes to the same.
                self.clockwork.at(min(deadline, now + 0.1), self.ask, hashes, landed, verdict.sleeper, deadline)
                return
            self.store.leave(verdict.sleeper)
        if isinstance(verdict, Served):
            self.clockwork.after(self.service_time(), self.finish, landed, self.reply(200, None, verdict.quotas))
        else:
            wait = self.wait_told(verdict)
            reply = self.reply(503, float(whole_seconds(wait)), verdict.quotas)
            self.clockwork.after(REFUSING + self.network(), landed, reply)

    def wait_told(self, verdict: Refused) -> int:
        """As the middleware tells it."""
        if verdict.rule != "load_defer":
            return verdict.retry_after
        told = self.limits.wait_told.seconds(verdict.load) * (1 + self.random.random() / 2)
        return max(verdict.retry_after, round(told * MICROSECONDS))

    def reply(self, status: int, retry_after: float | None, quotas: Sequence[Quota]) -> Reply:
        """The fields are written and read as on the wire."""
        if not self.fields or not quotas:
            return Reply(status, retry_after)
        headers = {"ratelimit": limit_value(quotas).decode(), "ratelimit-policy": self.policy_field}
        return Reply(status, retry_after, quota_told(headers))

    def finish(self, landed: Callable[[Reply], None], reply: Reply) -> None:
        self.store.release()
        self.clockwork.after(self.network(), landed, reply)
