"""The ASGI middleware: identify, admit, serve or defer or refuse, release.

Pure ASGI: what belongs to one request lives in one call. A place that was given is given back in one `finally`, without
awaiting, because callers hang up and a cancelled await does not finish.
"""

import inspect
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

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from throttle.rate_limit_fields import limit_value
from throttle.retry_after import whole_seconds
from throttle.server.acquaintances import Acquaintances
from throttle.server.agents import CallerClass
from throttle.server.agents import classify as classify_agent
from throttle.server.caller import Classify, Identify, IsWebApi, Rules, Standing
from throttle.server.config import ConfigFile, settings_from
from throttle.server.cookies import with_cookie
from throttle.server.deferral import sleep
from throttle.server.dry_run import DryRun
from throttle.server.held_receive import HeldReceive
from throttle.server.load_limit import LoadLimit, usable_cores
from throttle.server.measured_place import MeasuredPlace
from throttle.server.place import Place
from throttle.server.policy import AUTO, LOAD_DEFER, Limits
from throttle.server.processes import warn_of_several
from throttle.server.refusal import PAUSED, Field, Refusal, messages, refusal_of, required_fields
from throttle.server.refusal_log import RefusalLog
from throttle.server.reverse_dns import SystemResolver
from throttle.server.rule import MICROSECONDS, Deferred, Key, Quota, Refused, Rule, Served
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings, SettingsDict
from throttle.server.shutdown import on_stop_signal
from throttle.server.stores import Pause, Store
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.named import store_named
from throttle.server.stores.own_load import OwnLoad
from throttle.server.tally import Tally
from throttle.server.verify import Verifier

logger = logging.getLogger("throttle")

_CALLER = int(Key.CALLER)

ResponseHook = Callable[[Scope, Refusal], Response | Awaitable[Response | None] | None]


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
        self._tallies: defaultdict[CallerClass, Tally] = defaultdict(Tally)
        self._acquaintances = Acquaintances()
        self._own_secret = secrets.token_bytes(32)
        self._log = RefusalLog()
        self._prepared: dict[Rule, Any] = {}
        """of `ask`, since a store takes long to prepare a rule"""
        self._hears_stop_signal = False
        self._looks_for_proxy = 100  # refused browsers; behind a proxy the first already shows it
        self._config: ConfigFile | None = None
        self._look_at = 0
        if config is None:
            given, named = settings_from({}, os.environ, **settings)
        else:
            self._config = ConfigFile(config)
            given, named = self._config.load(**settings)
        self.store = store_named(named or store)
        self._store_name = named
        self._gate: Store = self.store
        """what is asked: the store, or the own load's gate in front of it"""
        self.load_limit: LoadLimit | None = None
        """what is known of how much this process can run at once, where `load_max` is «auto»"""
        self._own_load: OwnLoad | None = None
        self._load_max_told = 0
        self._use(given)
        self._dry_run = DryRun(clock)

    def counts(self) -> dict[str, dict[str, Any]]:
        """What became of the requests, by class: served, slept, hung up, refused by rule; in a dry run, what would."""
        return {caller_class.value: tally.as_dict() for caller_class, tally in self._tallies.items()}

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
        if settings.finds_load_max and self._own_load is None:
            self.load_limit = LoadLimit(usable_cores(), self._random)
            self._gate = self._own_load = OwnLoad(self.store, self.load_limit, self._tell_load_max)
            self._prepared.clear()
        secret = self._own_secret if settings.cookie_secret is None else settings.cookie_secret.encode()
        self._book = Rulebook(
            settings, self._gate, self._tallies, verify=self._verifier(settings), secret=secret, **self._hooks
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

    def _reread(self, now: int) -> None:
        """Look whether the configuration has changed, at most once a second; a broken one changes nothing."""
        self._look_at = now + MICROSECONDS
        config = self._config
        if config is None or not config.has_changed():
            return
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
        kind = scope["type"]
        if kind == "lifespan":
            return await self.app(scope, self._until_shutdown(receive), send)
        if kind != "http" and kind != "websocket":
            return await self.app(scope, receive, send)
        book = self._book
        if book.is_exempt(scope):
            return await self.app(scope, receive, send)
        now = int(self._clock() * MICROSECONDS + 0.5)
        if self._config is not None and now >= self._look_at:
            self._reread(now)
            book = self._book
        scope["throttle"] = self
        if self.store.paused is not None and (refusal := self._service_paused(book, scope, now)) is not None:
            if not book.enforces:
                return await self.app(scope, receive, send)
            return await self._refuse(scope, receive, send, refusal, ())

        rules, hashes, address, agent = book.caller(scope)
        further = rules.further
        if further is not None and further.acquainted is not None:
            is_known = self._acquaintances.knows(hashes[_CALLER], now, further.acquaintance)
            rules = further.acquainted if is_known else rules
        gate, own_load = self._gate, self._own_load
        if own_load is not None:
            own_load.arrived(now)
        verdict = gate.admit(rules.prepared, hashes, now, rules.rank)
        held: HeldReceive | None = None
        if not isinstance(verdict, Served):
            if not isinstance(verdict, Refused):
                verdict = await verdict
            if isinstance(verdict, Deferred):
                if not book.enforces:
                    serving = self._serve_unplaced(scope, receive, send)
                    note = partial(self._note_refusal, rules, scope=scope, address=address, agent=agent)
                    return await self._dry_run.served_meanwhile(gate, verdict, rules, hashes, serving, note)
                self._hear_stop_signal()
                rules.tally.slept += 1
                receive = held = HeldReceive(receive, self._clock())
                try:
                    slept = await sleep(
                        gate,
                        verdict,
                        rules,
                        hashes,
                        self._clock,
                        held,
                        lambda now: self._service_paused(self._book, scope, now),
                    )
                except BaseException:
                    held.close()
                    raise
                if slept is None:
                    rules.tally.hung_up += 1
                    return held.close()  # the caller hung up: there is nobody to answer
                if isinstance(slept, Refusal):
                    try:
                        return await self._refuse(scope, receive, send, slept, self._fields(rules, (), held))
                    finally:
                        held.close()
                verdict = slept
            if isinstance(verdict, Refused):
                refusal = self._note_refusal(rules, verdict, scope, address, agent)
                if not book.enforces:
                    return await self._serve_unplaced(scope, receive, send)
                try:
                    fields = self._fields(rules, verdict.quotas, held)
                    if further is not None and further.gives_cookie:
                        # It counts when the wait is over: whoever else hammers on the shared key, the wait is true.
                        fields = (*fields, book.cookie(scope, refusal.retry_after))
                    return await self._refuse(scope, receive, send, refusal, fields)
                finally:
                    if held is not None:
                        held.close()

        if own_load is None or self.load_limit is None:
            place = Place(gate, send, book.keeps_streams, book.releases_at_start)
        else:
            place = MeasuredPlace(
                own_load,
                send,
                keeps_streams=book.keeps_streams,
                at_start=book.releases_at_start,
                limit=self.load_limit,
                scope=scope,
                caller_class=rules.caller_class,
                clock=self._clock,
            )
        try:
            rules.tally.served += 1
            if verdict.quotas or held is not None:
                place.fields = self._fields(rules, verdict.quotas, held)
            answer: Send = place.send
            if further is not None:
                if further.gives_cookie:
                    answer = with_cookie(answer, book.cookie(scope))
                elif further.acquainted is not None:
                    self._acquaintances.note(hashes[_CALLER], now, further.acquaintance)
            await self.app(scope, receive, answer)
        finally:
            place.release()
            if held is not None:
                held.close()

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

    async def _refuse(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        refusal: Refusal,
        fields: Sequence[Field],
    ) -> None:
        if scope["type"] == "websocket":
            if "websocket.http.response" not in scope.get("extensions", {}):
                await receive()  # the connect; a close before the accept makes the server answer 403
                return await send({"type": "websocket.close", "code": 1013, "reason": refusal.title})
            await receive()
            send = _denial(send)
        if self._response is not None:
            drawn = self._response(scope, refusal)
            drawn = await drawn if inspect.isawaitable(drawn) else drawn
            if drawn is not None:
                return await drawn(scope, receive, _with_fields(send, [*required_fields(refusal), *fields]))
        start, body = messages(refusal, scope.get("method", "GET"), scope["headers"], fields)
        await send(start)
        await send(body)
        return None

    # The end

    def _hear_stop_signal(self) -> None:
        if not self._hears_stop_signal:
            self._hears_stop_signal = True
            on_stop_signal(self._gate.close)

    def _until_shutdown(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.store.open()
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


def _with_fields(send: Send, fields: Sequence[Field]) -> Send:
    """Adds the fields that an answer lacks as it is sent: the response itself may be one for many refusals."""

    async def complete(message: Message) -> None:
        if message["type"].endswith("http.response.start"):
            present = {name for name, _ in message["headers"]} - {b"set-cookie"}  # a field that may stand twice
            missing = [field for field in fields if field[0] not in present]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return complete


def _denial(send: Send) -> Send:
    """An HTTP answer to a WebSocket's handshake (ASGI's extension «WebSocket Denial Response»)."""

    async def deny(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return deny
