"""The ASGI middleware: identify, admit, serve or defer or refuse, release.

Pure ASGI: what belongs to one request lives in one call. A place that was given is given back in one `finally`, without
awaiting, because callers hang up and a cancelled await does not finish.
"""

import asyncio
import logging
import os
import random as random_module
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import log
from typing import Any, Unpack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from throttle.rate_limit_fields import limit_value
from throttle.retry_after import whole_seconds
from throttle.server.agent_table_file import AgentTableFile
from throttle.server.agents import classify as classify_agent
from throttle.server.answer import ResponseHook, answer
from throttle.server.caller import Caller, Classify, Identify, IsWebApi, Rules, Standing, Who
from throttle.server.config import ConfigFile, settings_from
from throttle.server.cookies import with_cookie
from throttle.server.deferral import sleep
from throttle.server.dry_run import DryRun
from throttle.server.held_receive import HeldReceive
from throttle.server.load_limit import LoadLimit, usable_cores
from throttle.server.loop_turns import LoopTurns
from throttle.server.measured_place import MeasuredPlace
from throttle.server.place import Place
from throttle.server.policy import AUTO, LOAD_DEFER, Limits
from throttle.server.processes import warn_of_several
from throttle.server.refusal import PAUSED, Field, Refusal, refusal_of
from throttle.server.refusal_log import RefusalLog
from throttle.server.reverse_dns import SystemResolver
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Key, Quota, Refused, Rule, Served, Verdict
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings, SettingsDict
from throttle.server.shutdown import on_stop_signal
from throttle.server.stores import Pause, Store
from throttle.server.stores.known_refusals import KnownRefusals
from throttle.server.stores.known_stacks import KnownStacks
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.named import store_named
from throttle.server.stores.own_load import OwnLoad
from throttle.server.tally import Tallies, Tally, counts
from throttle.server.verify import Verifier
from throttle.server.worker_threads import WorkerThreads

logger = logging.getLogger("throttle")

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
        self._hooks: dict[str, Any] = {"classify": classify, "is_web_api": is_web_api, "identify": identify, "app": app}
        self._hooks["wall_clock"] = wall_clock
        self._settings = settings
        self._verifies: Verifier | None = verify
        self._verifies_by: tuple[str | None, bool] | None = None
        self._is_own_verifier = verify is not None
        self._tallies: Tallies = defaultdict(Tally)
        self._agent_table: AgentTableFile | None = None
        self._own_secret = secrets.token_bytes(32)
        self._log = RefusalLog()
        self._prepared: dict[Rule, Any] = {}
        """of `ask`, since a store takes long to prepare a rule"""
        self._hears_stop_signal = False
        self._looks_for_proxy = 100  # refused browsers; behind a proxy the first already shows it
        self._config: ConfigFile | None = None
        self._look_at = 0.0
        """when files are looked at again; never, where there are none"""
        if config is None:
            given, named = settings_from({}, os.environ, **settings)
        else:
            self._config = ConfigFile(config)
            given, named = self._config.load(**settings)
        self.store = store_named(named or store)
        self._store_name = named
        is_elsewhere = type(self.store) is not MemoryStore
        self._gate: Store = KnownStacks(KnownRefusals(self.store, clock), clock) if is_elsewhere else self.store
        """what is asked: the store, or what stands in front of it"""
        self.load_limit: LoadLimit | None = None
        """what is known of how much this process can run at once, where `load_max` is «auto»"""
        self._own_load: OwnLoad | None = None
        self._turns = LoopTurns(_soon, clock, self._asked)
        self._load_max_told = 0
        self._use(given)
        self._dry_run = DryRun(clock)

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
            assert self.load_limit is not None
            return self.load_limit.load_max
        return load_max

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
        refusal = self._note_refusal(rules, verdict, scope, address, agent)
        return refusal if self._book.enforces else None

    def _use(self, settings: Settings) -> None:
        """Put settings in force, all at once. Hits, load and sleepers stay."""
        hooks = dict(self._hooks)
        if settings.agent_table is not None:
            if hooks["classify"] is not classify_agent:
                raise ValueError("agent_table= is for the throttle's own classifier, so leave out classify=")
            if self._agent_table is None or self._agent_table.path != settings.agent_table:
                self._agent_table = AgentTableFile(settings.agent_table)
            hooks["classify"] = self._agent_table.classifier.classify
        if settings.finds_load_max and self._own_load is None:
            self.load_limit = LoadLimit(usable_cores(), self._random)
            threads = WorkerThreads()
            self._own_load = OwnLoad(self._gate, self.load_limit, self._tell_load_max, threads.has_one_for_a_machine)
            self._gate = self._own_load
            self._prepared.clear()
        secret = self._own_secret if settings.cookie_secret is None else settings.cookie_secret.encode()
        self._book = Rulebook(
            settings, self._gate, self._tallies, verify=self._verifier(settings), secret=secret, **hooks
        )
        if settings.limits.paused:
            self.store.paused = Pause(None, settings.limits.pause_early)

    def _verifier(self, settings: Settings) -> Verifier | None:
        """The one in use, with all that it has learned, unless the settings name other sources."""
        if not settings.verifies:
            return None
        sources = settings.crawler_ranges, settings.reverse_dns
        if not self._is_own_verifier and sources != self._verifies_by:
            if self._verifies is not None:
                self._verifies.close()
            self._verifies_by = sources
            resolver = SystemResolver() if settings.reverse_dns else None
            self._verifies = Verifier(settings.crawler_ranges, resolver=resolver, clock=self._clock)
        return self._verifies

    def _look(self, now: int) -> None:
        """Look whether a file has changed, at most once a second; a broken one changes nothing."""
        if self._agent_table is not None and self._book.settings.agent_table is not None:
            self._agent_table.look()
        if self._config is not None and self._config.has_changed():
            self._reread(self._config)
        is_watching = self._config is not None or self._book.settings.agent_table is not None
        self._look_at = now + MICROSECONDS if is_watching else float("inf")

    def _reread(self, config: ConfigFile) -> None:
        was_paused = self._book.settings.limits.paused
        try:
            settings, named = config.load(**self._settings)
            self._use(settings)
        except ValueError as error:
            logger.error("configuration not re-read, the old one stays in force: %s", error)
            return
        if named != self._store_name:
            self._store_name = named
            logger.warning("store=%r in %s counts when the site is started again, not before", named, config.path)
        if was_paused and not settings.limits.paused:
            self.store.paused = None
        logger.info("configuration read again from %s", config.path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Who is served at once goes through here and nothing else: every line is in the way of every request.
        kind = scope["type"]
        if kind != "http" and kind != "websocket":
            if kind == "lifespan":
                receive = self._until_shutdown(receive)
            return await self.app(scope, receive, send)
        book = self._book
        if book.is_exempt(scope):
            return await self.app(scope, receive, send)
        now = int(self._clock() * MICROSECONDS + 0.5)
        if now >= self._look_at:
            self._look(now)
            book = self._book
        scope["throttle"] = self
        store = self._gate
        if store.paused is not None and (refusal := self._service_paused(book, scope, now)) is not None:
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
            waited = await self._defer_or_refuse(admitted, book, who, scope, receive, send)
            if waited is None:
                return None
            verdict, held = waited
            if held is not None:
                receive = held

        if self._own_load is None:
            place = Place(store, send, book.keeps_streams, book.releases_at_start)
        else:
            if (turns := self._turns).look_at <= now / MICROSECONDS:
                turns.look()
            if turns.is_slow and not rules.caller_class.is_browser:
                await self._turn(turns, store)
            place = self._measured_place(self._own_load, book, rules, scope, send, None if held else now)
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
                note = partial(self._note_refusal, rules, scope=scope, address=address, agent=agent)
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
        slept = await sleep(
            self._gate,
            deferred,
            rules,
            hashes,
            self._clock,
            held,
            lambda now: self._service_paused(self._book, scope, now),
        )
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
        refusal = self._note_refusal(rules, verdict, scope, address, agent)
        if not book.enforces:
            return self._serve_unplaced(scope, receive, send)
        fields = self._fields(rules, verdict.quotas, held)
        if rules.further is not None and rules.further.gives_cookie:
            # It counts when the wait is over: whoever else hammers on the shared key, the wait is true.
            fields = (*fields, book.cookie(scope, refusal.retry_after))
        return answer(refusal, scope, held or receive, send, fields, hook=self._response)

    def _measured_place(
        self, gate: OwnLoad, book: Rulebook, rules: Rules, scope: Scope, send: Send, arrived: int | None
    ) -> Place:
        """A place whose time tells how much the site can run. `arrived`: when, for those who did not sleep."""
        if arrived is not None:
            gate.arrived(arrived)
        assert self.load_limit is not None
        return MeasuredPlace(
            gate,
            send,
            book.keeps_streams,
            book.releases_at_start,
            self.load_limit,
            scope,
            rules.caller_class,
            self._clock,
        )

    def _asked(self) -> int:
        return 0 if self._own_load is None else self._own_load.asked

    async def _turn(self, turns: LoopTurns, store: Store) -> None:
        """Let others go first, with the place that one has."""
        its_turn = asyncio.Event()
        turns.wait(its_turn.set)
        try:
            await its_turn.wait()
        except BaseException:
            store.release()
            raise

    async def _serve_unplaced(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve who would have been refused or asleep: in a dry run they run all the same, and slow down the others."""
        limit = self.load_limit
        if limit is None:
            return await self.app(scope, receive, send)
        limit.began(int(self._clock() * MICROSECONDS + 0.5))
        try:
            await self.app(scope, receive, send)
        finally:
            limit.left(int(self._clock() * MICROSECONDS + 0.5))

    def _tell_load_max(self) -> None:
        """Log the number found, when it is another by a half or more."""
        limit = self.load_limit
        if limit is not None and abs(log(limit.load_max / (self._load_max_told or 1e-9))) >= log(1.5):
            self._load_max_told = limit.load_max
            logger.info("%s", limit)

    def _fields(self, rules: Rules, quotas: Sequence[Quota], held: HeldReceive | None) -> Sequence[Field]:
        """What the answer tells: RateLimit-Policy and RateLimit, unless switched off, and how long it slept."""
        fields: Sequence[Field] = ()
        if quotas and self._book.settings.rate_limit_fields:
            fields = ((b"ratelimit-policy", rules.policy_field), (b"ratelimit", limit_value(quotas)))
        if held is not None:
            milliseconds = (self._clock() - held.since) * 1000
            fields = (*fields, (b"server-timing", b'throttle;desc="slept";dur=%.0f' % milliseconds))
        return fields

    # The ways to be refused

    def _service_paused(self, book: Rulebook, scope: Scope, now: int) -> Refusal | None:
        """None when the pause is over or does not concern this caller."""
        pause = self.store.paused
        if pause is None:
            return None
        if pause.until is not None and now >= pause.until:
            self.store.paused = None
            return None
        is_person = True
        if not pause.early:
            rules, _, address, _ = book.caller(scope)
            is_person = rules.caller_class.is_browser
            if book.is_pause_exempt(address):
                return None
            rules.tally.refused[PAUSED] += 1
        seconds = book.settings.limits.pause_seconds
        left = round(seconds * MICROSECONDS) if pause.until is None else pause.until - now
        return Refusal(book.status_of(PAUSED), whole_seconds(left), PAUSED, is_person)

    def _note_refusal(self, rules: Rules, verdict: Refused, scope: Scope, address: str, agent: bytes) -> Refusal:
        """What there is to tell of a refusal; counted, and logged."""
        reason, left = verdict.rule, verdict.retry_after
        if reason == LOAD_DEFER:
            # An estimate; spread upwards by half, so that those refused now don't all return at once.
            told = rules.limits.wait_told.seconds(verdict.load) * (1 + self._random() / 2)
            left = max(left, round(told * MICROSECONDS))
        is_person = rules.caller_class.is_browser
        rules.tally.refused[reason] += 1
        self._log.note(reason, address, agent, rules.finding, is_enforced=self._book.enforces)
        if is_person and self._looks_for_proxy:
            self._look_for_proxy(scope)
        return refusal_of(self._book.status_of(reason), whole_seconds(left), reason, is_person)

    def _look_for_proxy(self, scope: Scope) -> None:
        self._looks_for_proxy -= 1
        if self._book.ignores_a_proxy(scope):
            self._looks_for_proxy = 0
            logger.warning(
                "a browser was refused whose request carries a forwarding header that is not believed. If a proxy "
                "stands in front of this site, name it in trusted_proxies: until then all who come through it "
                "count as one caller."
            )

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
                self._turns = LoopTurns(_soon, self._clock, self._asked)
                self._gate.open()
                if type(self.store) is MemoryStore:
                    warn_of_several()
            elif message["type"] == "lifespan.shutdown":
                self._gate.close()
                self._dry_run.close()
                if self._verifies is not None:
                    self._verifies.close()
                self._log.close()
            return message

        return watched


def _soon(callback: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_soon(callback)
