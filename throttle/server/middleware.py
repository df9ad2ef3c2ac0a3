"""The ASGI middleware: identify, admit, serve or defer or refuse, release.

Pure ASGI: what belongs to one request lives in one call. A place that was given is given back in one `finally`, without
awaiting, because callers hang up and a cancelled await does not finish.
"""

import asyncio
import inspect
import logging
import random as random_module
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from throttle.rate_limit_fields import limit_value, policy_value
from throttle.retry_after import whole_seconds
from throttle.server.address import AddressReader, Networks, packed_address
from throttle.server.agents import CallerClass
from throttle.server.agents import classify as classify_agent
from throttle.server.caller import CallerReader, Classify, Identify, IsWebApi, Rules
from throttle.server.exempt import Exempt
from throttle.server.held_receive import HeldReceive
from throttle.server.place import Place
from throttle.server.policy import Limits, handle_request, wake_rank
from throttle.server.refusal import PAUSED, Field, Refusal, messages, required_fields
from throttle.server.refusal_log import RefusalLog
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Quota, Refused, Rule, Served
from throttle.server.shutdown import on_stop_signal
from throttle.server.stores import Pause, Store
from throttle.server.stores.memory import MemoryStore

logger = logging.getLogger("throttle")

ResponseHook = Callable[[Scope, Refusal], Response | Awaitable[Response | None] | None]


class ThrottleMiddleware:
    """Serves people first, API clients and feed readers next, crawlers last; refuses with 503 and Retry-After.

    Mount it outermost. Every argument but `app` is a keyword:

    - `limits`: the thresholds, `Limits.connotea()` by default.
    - `store`: «memory» (this process), or a `Store`.
    - `trusted_proxies`: addresses or networks whose forwarding headers are believed («unix» for a unix socket), and
      `forwarded_header`, the one they write. Without them the socket's address counts.
    - `ipv6_prefix`: bits of an IPv6 address that count.
    - `exempt_paths`, `exempt_prefixes`: never throttled; see `exempt.py`. None: health checks, and every mounted
      `StaticFiles`. `/robots.txt` is exempt always. `exempt_preflights`: CORS preflights.
    - `api_paths`, `is_web_api(scope)`: who asks for such a path is an API client, whatever its agent.
    - `classify(agent_bytes)`, `identify(scope)`: another classifier; the verified user, in place of address and agent.
    - `status`: the status of refusals, one for all or by reason, such as `{"hit_stack": 429}`; else 503.
    - `response(scope, refusal)`: a Starlette response of the site's own, or None for the prepared one.
    - `rate_limit_fields`: write RateLimit and RateLimit-Policy.
    - `count_streams`: WebSockets and event streams stay in the load until they end.
    - `clock`: monotonic seconds; `random`: 0 to 1, spreads the waits told for load.

    Raises ValueError, when the application starts, for an argument that makes no sense.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits | None = None,
        store: Store | str = "memory",
        trusted_proxies: Sequence[str] = (),
        forwarded_header: str | None = None,
        ipv6_prefix: int = 64,
        exempt_paths: Sequence[str] | None = None,
        exempt_prefixes: Sequence[str] | None = None,
        exempt_preflights: bool = True,
        api_paths: Sequence[str] = (),
        is_web_api: IsWebApi | None = None,
        classify: Classify = classify_agent,
        identify: Identify | None = None,
        status: int | Mapping[str, int] = 503,
        response: ResponseHook | None = None,
        rate_limit_fields: bool = True,
        count_streams: bool = False,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.app = app
        self.limits = Limits() if limits is None else limits
        self.store = store_named(store)
        address = AddressReader(
            trusted_proxies=trusted_proxies, forwarded_header=forwarded_header, ipv6_prefix=ipv6_prefix
        )
        reader = CallerReader(
            self._compiled,
            address=address,
            classify=classify,
            stack_exempt_agents=self.limits.stack_exempt_agents,
            api_paths=_checked_paths("api_paths", api_paths),
            is_web_api=is_web_api,
            identify=identify,
        )
        self._caller = reader.__call__  # bound once: calling an instance costs 60 ns more
        self._ignores_a_proxy = reader.ignores_a_proxy
        self._is_exempt = Exempt(paths=exempt_paths, prefixes=exempt_prefixes, preflights=exempt_preflights).__call__
        self._pause_exempt = Networks(self.limits.pause_exempt, "pause_exempt")
        self._status = _checked_status(status)
        self._response = response
        self._rate_limit_fields = rate_limit_fields
        self._count_streams = count_streams
        self._clock = clock
        self._random = random
        self._log = RefusalLog()
        self._hears_stop_signal = False
        self._has_warned_of_proxy = False
        if self.limits.paused:
            self.store.paused = Pause(None, self.limits.pause_early)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            return await self.app(scope, self._until_shutdown(receive), send)
        if (kind != "http" and kind != "websocket") or self._is_exempt(scope):
            return await self.app(scope, receive, send)
        now = int(self._clock() * MICROSECONDS + 0.5)
        if self.store.paused is not None and (refusal := self._service_paused(scope, now)) is not None:
            return await self._refuse(scope, receive, send, refusal, ())

        rules, hashes, address, agent = self._caller(scope)
        verdict = self.store.admit(rules.prepared, hashes, now, rules.rank)
        held: HeldReceive | None = None
        if not isinstance(verdict, Served):
            if not isinstance(verdict, Refused):
                verdict = await verdict
            if isinstance(verdict, Deferred):
                receive = held = HeldReceive(receive, self._clock())
                slept = await self._sleep(verdict, rules, hashes, held)
                if slept is None:
                    return held.close()  # the caller hung up: there is nobody to answer
                verdict = slept
            if isinstance(verdict, Refused):
                refusal = self._refusal(rules, verdict)
                self._note(refusal, address, agent, scope)
                try:
                    return await self._refuse(scope, receive, send, refusal, self._fields(rules, verdict.quotas, held))
                finally:
                    if held is not None:
                        held.close()

        place = Place(self.store, send, self._count_streams)
        try:
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
        if quotas and self._rate_limit_fields:
            fields = ((b"ratelimit-policy", rules.policy_field), (b"ratelimit", limit_value(quotas)))
        if held is not None:
            milliseconds = (self._clock() - held.since) * 1000
            fields = (*fields, (b"server-timing", b'throttle;desc="slept";dur=%.0f' % milliseconds))
        return fields

    def _note(self, refusal: Refusal, address: str, agent: bytes, scope: Scope) -> None:
        self._log.note(refusal, address, agent)
        if refusal.is_person and not self._has_warned_of_proxy and self._ignores_a_proxy(scope):
            self._has_warned_of_proxy = True
            logger.warning(
                "a browser was refused whose request carries a forwarding header that is not believed. If a proxy "
                "stands in front of this site, name it in trusted_proxies: until then all who come through it "
                "count as one caller."
            )

    def _compiled(self, caller_class: CallerClass, is_stack_exempt: bool) -> Rules:
        rules = list(handle_request(caller_class, self.limits, is_stack_exempt=is_stack_exempt))
        return Rules(
            caller_class,
            self.store.prepare(rules, tells_quotas=self._rate_limit_fields),
            wake_rank(caller_class),
            policy_value([rule for rule in rules if isinstance(rule, Rule)]),
        )

    # The three ways to be refused

    def _service_paused(self, scope: Scope, now: int) -> Refusal | None:
        """None when the pause is over, or does not concern this caller."""
        pause = self.store.paused
        if pause is None:
            return None
        if pause.until is not None and now >= pause.until:
            self.store.paused = None
            return None
        is_person = True
        if not pause.early:
            rules, _, address, _ = self._caller(scope)
            is_person = rules.caller_class.is_browser
            packed = packed_address(address.partition("/")[0])
            if packed is not None and packed in self._pause_exempt:
                return None
        left = self.limits.pause_seconds * MICROSECONDS if pause.until is None else pause.until - now
        return Refusal(self._status_of(PAUSED), whole_seconds(round(left)), PAUSED, is_person)

    def _refusal(self, rules: Rules, verdict: Refused) -> Refusal:
        reason, left = verdict.rule, verdict.retry_after
        if reason == "load_defer":
            # An estimate; spread upwards by half, so that those refused now don't all return at once.
            told = self.limits.wait_told.seconds(verdict.load) * (1 + self._random() / 2)
            left = max(left, round(told * MICROSECONDS))
        return Refusal(self._status_of(reason), whole_seconds(left), reason, rules.caller_class.is_browser)

    def _status_of(self, reason: str) -> int:
        return self._status.get(reason) or self._status["*"]

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

    # Sleeping

    async def _sleep(
        self, verdict: Deferred, rules: Rules, hashes: Hashes, held: HeldReceive
    ) -> Served | Refused | None:
        """Wait for room and ask again: the last verdict, or None when the caller hung up."""
        self._hear_stop_signal()
        sleeper = verdict.sleeper
        deadline = self._clock() + self.limits.defer_delay.seconds(verdict.load)
        hang_up = asyncio.ensure_future(held.hang_up())
        try:
            while True:
                left = max(0, deadline - self._clock())
                await asyncio.wait((sleeper.woken, hang_up), timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if hang_up.done():
                    return None
                now = int(self._clock() * MICROSECONDS + 0.5)
                answer = self.store.admit(rules.prepared, hashes, now, rules.rank, sleeper)
                last = answer if isinstance(answer, Served | Refused) else await answer
                if not isinstance(last, Deferred) or self._clock() >= deadline:
                    return last
        except BaseException:
            held.close()
            raise
        finally:
            hang_up.cancel()
            self.store.leave(sleeper)

    def _hear_stop_signal(self) -> None:
        if not self._hears_stop_signal:
            self._hears_stop_signal = True
            on_stop_signal(self.store.close)

    def _until_shutdown(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self.store.close()
                self._log.close()
            return message

        return watched


def store_named(store: Store | str) -> Store:
    """A store by name. Raises ValueError for a name that is none."""
    if not isinstance(store, str):
        return store
    if store == "memory":
        return MemoryStore()
    raise ValueError(f"store={store!r}: use 'memory', or a Store")


def _missing(response: Response, fields: Sequence[Field]) -> list[Field]:
    present = {name for name, _ in response.raw_headers}
    return [field for field in fields if field[0] not in present]


def _denial(send: Send) -> Send:
    """An HTTP answer to a WebSocket's handshake (ASGI's extension «WebSocket Denial Response»)."""

    async def deny(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return deny


def _checked_paths(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    if isinstance(paths, str) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise ValueError(f"{what}={paths!r}: a list of paths is needed, each beginning with /")
    return tuple(paths)


def _checked_status(status: int | Mapping[str, int]) -> dict[str, int]:
    statuses = {"*": 503, **status} if isinstance(status, Mapping) else {"*": status}
    for reason, number in statuses.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 400 <= number <= 599:
            raise ValueError(f"status={status!r}: {reason} needs a status from 400 to 599")
    return statuses
