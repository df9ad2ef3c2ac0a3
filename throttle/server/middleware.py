"""The ASGI middleware: identify, admit, serve or defer or refuse, release.

Pure ASGI: what belongs to one request lives in one call. A place that was given is given back in one `finally`, without
awaiting, because callers hang up and a cancelled await does not finish.
"""

import inspect
import logging
import os
import random as random_module
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from throttle.rate_limit_fields import limit_value
from throttle.retry_after import whole_seconds
from throttle.server.agents import CallerClass
from throttle.server.agents import classify as classify_agent
from throttle.server.caller import Classify, Identify, IsWebApi, Rules, Standing
from throttle.server.config import ConfigFile, settings_from
from throttle.server.deferral import sleep
from throttle.server.dry_run import DryRun
from throttle.server.held_receive import HeldReceive
from throttle.server.place import Place
from throttle.server.policy import LOAD_DEFER
from throttle.server.processes import warn_of_several
from throttle.server.refusal import PAUSED, Field, Refusal, messages, refusal_of, required_fields
from throttle.server.refusal_log import RefusalLog
from throttle.server.rule import MICROSECONDS, Deferred, Quota, Refused, Rule, Served
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings, SettingsDict
from throttle.server.shutdown import on_stop_signal
from throttle.server.stores import Pause, Store
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.named import store_named
from throttle.server.tally import Tally

logger = logging.getLogger("throttle")

ResponseHook = Callable[[Scope, Refusal], Response | Awaitable[Response | None] | None]


class ThrottleMiddleware:
    """Serves people first, API clients and feed readers next, crawlers last; refuses with 503 and Retry-After.

    Mount it outermost. Every argument but `app` is a keyword. Those named like a field of `Settings` are explained
    there; `config`, a TOML file, overrides them and is read again when it changes, and the environment (THROTTLE_STORE,
    THROTTLE_ENFORCE, THROTTLE_LOAD_MAX, THROTTLE_TRUSTED_PROXIES) overrides both. Besides:

    - `store`: «memory» (this process), «local» (this machine), a URL of Redis or Valkey, or a `Store`.
    - `is_web_api(scope)`: who makes such a request is an API client, whatever its agent.
    - `classify(agent_bytes)`, `identify(scope)`: another classifier; the verified user, in place of address and agent.
    - `response(scope, refusal)`: a Starlette response of the site's own, or None for the prepared one.
    - `clock`: monotonic seconds; `random`: 0 to 1, spreads the waits told for load.

    Raises ValueError, when the application starts, for a setting that makes no sense.
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
        response: ResponseHook | None = None,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        **settings: Unpack[SettingsDict],
    ) -> None:
        self.app = app
        self._response = response
        self._clock = clock
        self._random = random
        self._hooks: dict[str, Any] = {"classify": classify, "is_web_api": is_web_api, "identify": identify}
        self._settings = settings
        self._tallies: defaultdict[CallerClass, Tally] = defaultdict(Tally)
        self._log = RefusalLog()
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
        self._use(given)
        self._dry_run = DryRun(self.store, clock, self._note_refusal)

    def counts(self) -> dict[str, dict[str, Any]]:
        """What became of the requests, by class: served, slept, hung up, refused by rule; in a dry run, what would."""
        return {caller_class.value: tally.as_dict() for caller_class, tally in self._tallies.items()}

    @property
    def is_enforced(self) -> bool:
        """Not a dry run."""
        return self._book.enforces

    async def ask(self, rule: Rule, scope: Scope) -> Refusal | None:
        """Count a request that is being served under one more rule; a refusal where that refuses it.

        In a dry run the refusal is counted, and None is returned.
        """
        rules, hashes, address, agent = self._book.caller(scope)
        if rules.standing is Standing.EXEMPT:
            return None
        now = int(self._clock() * MICROSECONDS + 0.5)
        answer = self.store.admit(self.store.prepare([rule], tells_quotas=False), hashes, now, rules.rank)
        verdict = answer if isinstance(answer, Served | Refused) else await answer
        if isinstance(verdict, Served):
            self.store.release()  # it holds its place in the load already
            return None
        refusal = self._note_refusal(rules, verdict, scope, address, agent)
        return refusal if self._book.enforces else None

    def _use(self, settings: Settings) -> None:
        """Put settings in force, all at once. Hits, load and sleepers stay."""
        self._book = Rulebook(settings, self.store, self._tallies, **self._hooks)
        if settings.limits.paused:
            self.store.paused = Pause(None, settings.limits.pause_early)

    def _reread(self, now: int) -> None:
        """Look whether the configuration has changed, at most once a second; a broken one changes nothing."""
        self._look_at = now + MICROSECONDS
        config = self._config
        if config is None or not config.has_changed():
            return
        was_paused = self._book.settings.limits.paused
        try:
            settings, _ = config.load(**self._settings)
        except ValueError as error:
            logger.error("configuration not re-read, the old one stays in force: %s", error)
            return
        self._use(settings)
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
            return await self._refuse(scope, receive, send, refusal, ())

        rules, hashes, address, agent = book.caller(scope)
        verdict = self.store.admit(rules.prepared, hashes, now, rules.rank)
        held: HeldReceive | None = None
        if not isinstance(verdict, Served):
            if not isinstance(verdict, Refused):
                verdict = await verdict
            if isinstance(verdict, Deferred):
                if not book.enforces:
                    serving = self.app(scope, receive, send)
                    return await self._dry_run.served_meanwhile(verdict, rules, hashes, serving)
                self._hear_stop_signal()
                rules.tally.slept += 1
                receive = held = HeldReceive(receive, self._clock())
                try:
                    slept = await sleep(self.store, verdict, rules, hashes, self._clock, held)
                except BaseException:
                    held.close()
                    raise
                if slept is None:
                    rules.tally.hung_up += 1
                    return held.close()  # the caller hung up: there is nobody to answer
                verdict = slept
            if isinstance(verdict, Refused):
                refusal = self._note_refusal(rules, verdict, scope, address, agent)
                if not book.enforces:
                    return await self.app(scope, receive, send)
                try:
                    fields = self._fields(rules, verdict.quotas, held)
                    return await self._refuse(scope, receive, send, refusal, fields)
                finally:
                    if held is not None:
                        held.close()

        place = Place(self.store, send, book.keeps_streams)
        try:
            rules.tally.served += 1
            if verdict.quotas or held is not None:
                place.fields = self._fields(rules, verdict.quotas, held)
            await self.app(scope, receive, place.send)
        finally:
            place.release()
            if held is not None:
                held.close()

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
        """None when the pause is over, does not concern this caller, or is only a rehearsal."""
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
        if not book.enforces:
            return None
        seconds = book.settings.limits.pause_seconds
        left = round(seconds * MICROSECONDS) if pause.until is None else pause.until - now
        return Refusal(book.status_of(PAUSED), whole_seconds(left), PAUSED, is_person)

    def _note_refusal(
        self, rules: Rules, verdict: Refused, scope: Scope | None = None, address: str = "", agent: bytes = b""
    ) -> Refusal:
        """What there is to tell of a refusal; counted, and logged."""
        reason, left = verdict.rule, verdict.retry_after
        if reason == LOAD_DEFER:
            # An estimate; spread upwards by half, so that those refused now don't all return at once.
            told = rules.limits.wait_told.seconds(verdict.load) * (1 + self._random() / 2)
            left = max(left, round(told * MICROSECONDS))
        is_person = rules.caller_class.is_browser
        rules.tally.refused[reason] += 1
        self._log.note(reason, address, agent, is_enforced=self._book.enforces)
        if is_person and self._looks_for_proxy and scope is not None:
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
                drawn.raw_headers.extend(_missing(drawn, [*required_fields(refusal), *fields]))
                return await drawn(scope, receive, send)
        start, body = messages(refusal, scope.get("method", "GET"), scope["headers"], fields)
        await send(start)
        await send(body)
        return None

    # The end

    def _hear_stop_signal(self) -> None:
        if not self._hears_stop_signal:
            self._hears_stop_signal = True
            on_stop_signal(self.store.close)

    def _until_shutdown(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.store.open()
                if type(self.store) is MemoryStore:
                    warn_of_several()
            elif message["type"] == "lifespan.shutdown":
                self.store.close()
                self._dry_run.close()
                self._log.close()
            return message

        return watched


def _missing(response: Response, fields: Sequence[Field]) -> list[Field]:
    present = {name for name, _ in response.raw_headers}
    return [field for field in fields if field[0] not in present]


def _denial(send: Send) -> Send:
    """An HTTP answer to a WebSocket's handshake (ASGI's extension «WebSocket Denial Response»)."""

    async def deny(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return deny
