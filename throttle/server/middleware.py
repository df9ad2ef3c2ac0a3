"""The ASGI middleware: identify, admit, serve or defer or refuse, release.

Pure ASGI: what belongs to one request lives in one call. A place that was given is given back in one `finally`, without
awaiting, because callers hang up and a cancelled await does not finish.
"""

import os
import random as random_module
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from throttle.rate_limit_fields import limit_value
from throttle.server.agents import classify as classify_agent
from throttle.server.answer import ResponseHook, answer
from throttle.server.auto_load_max import AutoLoadMax
from throttle.server.caller import Caller, Classify, Identify, IsWebApi, Rules, Standing, Who
from throttle.server.cookies import with_cookie
from throttle.server.deferral import sleep
from throttle.server.dry_run import DryRun
from throttle.server.held_receive import HeldReceive
from throttle.server.load_limit import LoadLimit
from throttle.server.place import Place
from throttle.server.policy import AUTO, Limits
from throttle.server.processes import warn_of_several
from throttle.server.refusal import Field, Refusal
from throttle.server.refusals import Refusals
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Key, Quota, Refused, Rule, Served, Verdict
from throttle.server.rulebook import Rulebook
from throttle.server.service_paused import service_paused
from throttle.server.settings import Settings, SettingsDict
from throttle.server.settings_in_force import SettingsInForce
from throttle.server.shutdown import on_stop_signal
from throttle.server.stores import Store
from throttle.server.stores.known_refusals import KnownRefusals
from throttle.server.stores.known_stacks import KnownStacks
from throttle.server.stores.memory import MemoryStore
from throttle.server.tally import Tallies, Tally, counts
from throttle.server.verify import Verifier

_CALLER = int(Key.CALLER)


class ThrottleMiddleware:
    """Serves people first, API clients and feed readers next, crawlers last; refuses with 503 and Retry-After.

    Mount it outermost. Every argument but `app` is a keyword. Those named like a field of `Settings` are explained
    there; `config`, a TOML file, overrides them and is read again when it changes, and the environment (THROTTLE_STORE,
    THROTTLE_ENFORCE, THROTTLE_LOAD_MAX, THROTTLE_TRUSTED_PROXIES) overrides both. Besides:

    - `store`: «memory» (this process), «local» (this machine), a URL of Redis or Valkey, or a `Store`.
    - `is_web_api(scope)`: who makes such a request is an API client, whatever its agent.
    - `classify(agent_bytes)`, `identify(scope)`: another classifier; the verified user, in place of address and agent.
    - `verify`: a `Verifier` of the site's own, in place of one by `crawler_ranges` and `reverse_dns`.
    - `response(scope, refusal)`: a Starlette response of the site's own, or None for the prepared one.
    - `clock`: monotonic seconds; `wall_clock`: those of the cookies; `random`: 0 to 1, spreads the waits told for load.

    Raises ValueError for a setting that makes no sense; under Starlette's `add_middleware` when the application starts
    (uvicorn must run with `--lifespan on` to stop at that, or it answers 500 to everybody).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        config: str | os.PathLike[str] | None = None,
        store: Store | str = "memory",
        is_web_api: IsWebApi | None = None,
        classify: Classify = classify_agent,
        identify: Identify | None = None,
        verify: Verifier | None = None,
        response: ResponseHook | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
        **settings: Unpack[SettingsDict],
    ) -> None:
        self.app = app
        self._response = response
        self._clock = clock
        self._random = random
        self._tallies: Tallies = defaultdict(Tally)
        hooks = {"is_web_api": is_web_api, "identify": identify, "app": app, "wall_clock": wall_clock}
        self._in_force = SettingsInForce(
            config, store, settings, self._gate_for, self._tallies, classify, verify, clock, **hooks
        )
        self.store = self._in_force.store
        is_elsewhere = type(self.store) is not MemoryStore
        self._gate: Store = KnownStacks(KnownRefusals(self.store, clock), clock) if is_elsewhere else self.store
        """what is asked: the store, or what stands in front of it"""
        self._auto: AutoLoadMax | None = None
        self._prepared: dict[Rule, Any] = {}
        """of `ask`, since a store takes long to prepare a rule"""
        self._book = self._in_force.use(self._in_force.loaded.settings)
        self._look_at = 0.0
        """when files are looked at again; never, where there are none"""
        self._dry_run = DryRun(clock)
        self._refusals = Refusals(random)
        self._hears_stop_signal = False

    def counts(self) -> dict[str, dict[str, Any]]:
        """What became of the requests, by class: served, slept, hung up, refused by rule; in a dry run, what would.

        «findings» has the same for those of whom something was known beside the agent (`Finding`).
        """
        return counts(self._tallies)

    def who(self, scope: Scope) -> Who:
        """Who asks, and what decided: for a request that is being served or refused, wherever its scope is."""
        return self._book.who(scope)

    @property
    def limits(self) -> Limits:
        """The limits in force, but for paths that have their own."""
        return self._book.settings.limits

    @property
    def load(self) -> int:
        """Requests running now, as far as this process knows."""
        return self._gate.load

    @property
    def sleeping(self) -> int:
        """Requests waiting for room now."""
        return self._gate.sleeping

    @property
    def is_enforced(self) -> bool:
        """Not a dry run."""
        return self._book.enforces

    @property
    def load_max(self) -> int:
        """Requests that may run at once now, for a bot to be served: as set, or as found."""
        load_max = self._book.settings.limits.load_max
        if load_max == AUTO:
            assert self._auto is not None
            return self._auto.limit.load_max
        return load_max

    @property
    def load_limit(self) -> LoadLimit | None:
        """What is known of how much this process can run at once, where `load_max` is «auto»."""
        return None if self._auto is None else self._auto.limit

    async def ask(self, rule: Rule, scope: Scope) -> Refusal | None:
        """Count a request that is being served under one more rule; a refusal where that refuses it.

        In a dry run the refusal is counted, and None is returned. Rules are kept: none may bear what a caller sent.
        """
        rules, hashes, address, agent = self._book.caller(scope)
        if rules.standing is Standing.EXEMPT:
            return None
        now = int(self._clock() * MICROSECONDS + 0.5)
        prepared = self._prepared.get(rule)
        if prepared is None:
            prepared = self._prepared[rule] = self._gate.prepare([rule], tells_quotas=False)
        answer = self._gate.admit(prepared, hashes, now, rules.rank)
        verdict = answer if isinstance(answer, Served | Refused) else await answer
        if isinstance(verdict, Served):
            self._gate.release()  # it holds its place in the load already
            return None
        rules.tally.served -= 1  # it was counted so when the other rules let it through
        refusal = self._refusals.note(self._book, rules, verdict, scope, address, agent)
        return refusal if self._book.enforces else None

    def _gate_for(self, settings: Settings) -> Store:
        """The gate; with `load_max="auto"` from now on, another one in front of it."""
        if settings.finds_load_max and self._auto is None:
            self._auto = AutoLoadMax(self._gate, self._clock, self._random)
            self._gate = self._auto.gate
            self._prepared.clear()
        return self._gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Who is served at once goes through here and nothing else: every line is in the way of every request.
        kind, book = scope["type"], self._book
        if (kind != "http" and kind != "websocket") or book.is_exempt(scope):
            receive = self._until_shutdown(receive) if kind == "lifespan" else receive
            return await self.app(scope, receive, send)
        now = int(self._clock() * MICROSECONDS + 0.5)
        if now >= self._look_at:
            self._book, self._look_at = self._in_force.look(now)
            book = self._book
        scope["throttle"] = self
        store = self._gate
        if store.paused is not None and (refusal := service_paused(book, self.store, scope, now)) is not None:
            return await self._answer_paused(book, scope, receive, send, refusal)

        rules, hashes, address, agent = book.caller(scope)
        further = rules.further
        if further is not None and further.acquainted is not None:
            is_known = store.is_acquaintance(hashes[_CALLER], now, further.acquaintance)
            rules = further.acquainted if is_known else rules
        admitted = store.admit(rules.prepared, hashes, now, rules.rank)
        held: HeldReceive | None = None
        if isinstance(admitted, Served):
            verdict = admitted
        else:
            who = rules, hashes, address, agent
            if type(admitted) is Refused:
                return await self._answer_refused(admitted, book, who, scope, receive, send)
            if (waited := await self._defer_or_refuse(admitted, book, who, scope, receive, send)) is None:
                return None
            verdict, held = waited
            receive = held or receive

        if (auto := self._auto) is None:
            place = Place(store, send, book.keeps_streams, book.releases_at_start)
        else:
            place = auto.place(book, rules, scope, send, now, held) or await auto.in_turn(
                book, rules, scope, send, now, held
            )
        try:
            rules.tally.served += 1
            if verdict.quotas or held is not None:
                place.fields = self._fields(rules, verdict.quotas, held)
            send = place.send
            if further is not None:
                if further.gives_cookie:
                    send = with_cookie(send, book.cookie(scope))
                elif further.acquainted is not None:
                    store.note_visit(hashes[_CALLER], now, further.acquaintance)
            await self.app(scope, receive, send)
        finally:
            place.release()
            if held is not None:
                held.close()

    async def _defer_or_refuse(
        self,
        admitted: Refused | Awaitable[Verdict],
        book: Rulebook,
        who: Caller,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> tuple[Served, HeldReceive | None] | None:
        """The verdict that serves, after a sleep or not, and what was received meanwhile; None if all is answered."""
        rules, hashes, address, agent = who
        verdict: Verdict | None = admitted if isinstance(admitted, Refused) else await admitted
        held: HeldReceive | None = None
        if isinstance(verdict, Deferred):
            if not book.enforces:
                serving = self._serve_unplaced(scope, receive, send)

                def note(refused: Refused) -> Refusal:
                    return self._refusals.note(self._book, rules, refused, scope, address, agent)

                await self._dry_run.served_meanwhile(self._gate, verdict, rules, hashes, serving, note)
                return None
            held = HeldReceive(receive, self._clock())
        try:
            if held is not None and isinstance(verdict, Deferred):
                verdict = await self._sleep(verdict, rules, hashes, scope, send, held)
            if isinstance(verdict, Served):
                return verdict, held
            if verdict is not None:
                await self._answer_refused(verdict, book, who, scope, receive, send, held)
        except BaseException:
            if held is not None:
                held.close()
            raise
        if held is not None:
            held.close()
        return None

    async def _sleep(
        self, deferred: Deferred, rules: Rules, hashes: Hashes, scope: Scope, send: Send, held: HeldReceive
    ) -> Served | Refused | None:
        """The verdict when the wait for room is over; None where the caller hung up, or the site was paused."""
        self._hear_stop_signal()
        rules.tally.slept += 1

        def pause(now: int) -> Refusal | None:
            return service_paused(self._book, self.store, scope, now)

        slept = await sleep(self._gate, deferred, rules, hashes, self._clock, held, pause)
        if slept is None:
            rules.tally.hung_up += 1  # there is nobody to answer
        elif isinstance(slept, Refusal):
            await answer(slept, scope, held, send, self._fields(rules, (), held), hook=self._response)
        return None if isinstance(slept, Refusal) else slept

    async def _answer_paused(
        self, book: Rulebook, scope: Scope, receive: Receive, send: Send, refusal: Refusal
    ) -> None:
        if not book.enforces:
            return await self.app(scope, receive, send)
        return await answer(refusal, scope, receive, send, hook=self._response)

    def _answer_refused(
        self,
        verdict: Refused,
        book: Rulebook,
        who: Caller,
        scope: Scope,
        receive: Receive,
        send: Send,
        held: HeldReceive | None = None,
    ) -> Awaitable[None]:
        rules, _, address, agent = who
        refusal = self._refusals.note(self._book, rules, verdict, scope, address, agent)
        if not book.enforces:
            return self._serve_unplaced(scope, receive, send)
        fields = self._fields(rules, verdict.quotas, held)
        if rules.further is not None and rules.further.gives_cookie:
            # It counts when the wait is over: whoever else hammers on the shared key, the wait is true.
            fields = (*fields, book.cookie(scope, refusal.retry_after))
        return answer(refusal, scope, held or receive, send, fields, hook=self._response)

    async def _serve_unplaced(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve who would have been refused or asleep: in a dry run they run all the same, and slow down the others."""
        if self._auto is None:
            return await self.app(scope, receive, send)
        return await self._auto.serve_unplaced(self.app, scope, receive, send)

    def _fields(self, rules: Rules, quotas: Sequence[Quota], held: HeldReceive | None) -> Sequence[Field]:
        """What the answer tells: RateLimit-Policy and RateLimit, unless switched off, and how long it slept."""
        fields: Sequence[Field] = ()
        if quotas and self._book.settings.rate_limit_fields:
            fields = ((b"ratelimit-policy", rules.policy_field), (b"ratelimit", limit_value(quotas)))
        if held is not None:
            milliseconds = (self._clock() - held.since) * 1000
            fields = (*fields, (b"server-timing", b'throttle;desc="slept";dur=%.0f' % milliseconds))
        return fields

    # The end

    def _hear_stop_signal(self) -> None:
        if not self._hears_stop_signal:
            self._hears_stop_signal = True
            on_stop_signal(lambda: self._gate.close())  # that of then: another may be put in front of the store

    def _until_shutdown(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._hears_stop_signal = False  # the loop may be another one
                if self._auto is not None:
                    self._auto.open()
                self._gate.open()
                if type(self.store) is MemoryStore:
                    warn_of_several()
            elif message["type"] == "lifespan.shutdown":
                self._gate.close()
                self._dry_run.close()
                self._in_force.close()
                self._refusals.close()
            return message

        return watched
