"""Any client whose methods are awaited, throttled: all of them, by one object in front of it.

    api = throttled(SomeClient(), "api.example.org", rates=Rates(most=10))
    await api.search("throttle")                 # waits for its turn, is sent, and what comes back is heard
    async with api.get("/feed") as response: ... # the slot is held until the block is left
    async for page in api.pages(): ...           # and here until the last one

What is no method, what does not wait, and `close` go to the client untouched. Parts of the client that have such
methods (`api.users.find()`) are throttled with it.
"""

import inspect
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any, Protocol, TypeVar, Unpack, cast

from throttle.client.answer import Answer, Failure
from throttle.client.driver import drive_async
from throttle.client.host import Host, Place
from throttle.client.hosts import Hosts
from throttle.client.settings import Settings, given_or_new
from throttle.client.told import answer_told

T = TypeVar("T")
UNTOUCHED = frozenset({"close", "aclose", "wait_closed", "disconnect", "stop"})


def throttled(
    client: T,
    host: str | Callable[..., str],
    *,
    hosts: Hosts | None = None,
    retried: Collection[str] = (),
    untouched: Collection[str] = UNTOUCHED,
    answer: "Callable[[Any, float], Answer | None] | None" = None,
    clock: Callable[[], float] = time.monotonic,
    **settings: Unpack[Settings],
) -> T:
    """`client`, each of whose calls waits for its host's turn.

    host       whom all calls go to, `api.example.org`; or a function of a call's arguments that says it
    retried    methods that may be called again when they fail; nobody else can know which do no harm
    untouched  methods that are not held back
    answer     of what a call returned or raised, and when: what it says of the host. None: a result that was served,
               or an error that says nothing of the host, and is raised. By default `usual_answer`
    """
    shared = _Shared(given_or_new(hosts, settings), host, retried, untouched, answer or usual_answer, clock)
    return cast(T, _Throttled(client, shared))


def usual_answer(outcome: Any, at: float) -> Answer | None:
    """By the customs of Python's clients: `status_code` or `status`, and `headers`, of a result or an error.

    An error may carry its `response`. A result without a status was served. An error without one is a failure of
    the host's if it is an OSError, or if its name, or that of a kind that it belongs to, tells of a time-out or a
    connection: few clients derive theirs from Python's.
    """
    source = getattr(outcome, "response", outcome) if isinstance(outcome, BaseException) else outcome
    for name in ("status_code", "status"):
        status = getattr(source, name, None)
        if isinstance(status, int) and 100 <= status <= 599:
            return answer_told(at, status, _fields(getattr(source, "headers", None)))
    if not isinstance(outcome, BaseException):
        return Answer(at, 200)
    names = " ".join(kind.__name__.lower() for kind in type(outcome).__mro__)
    if "timeout" in names:
        return Answer(at, Failure.TIMEOUT)
    is_lost = isinstance(outcome, OSError) or "connect" in names or "network" in names
    return Answer(at, Failure.CONNECT) if is_lost else None


def _fields(headers: Any) -> list[tuple[bytes, bytes]]:
    items = getattr(headers, "items", None)
    return (
        [(str(name).encode(errors="replace"), str(value).encode(errors="replace")) for name, value in items()]
        if callable(items)
        else []
    )


class _Shared:
    """What all calls of one client share."""

    def __init__(
        self,
        hosts: Hosts,
        host: str | Callable[..., str],
        retried: Collection[str],
        untouched: Collection[str],
        answer: Callable[[Any, float], Answer | None],
        clock: Callable[[], float],
    ) -> None:
        self.hosts = hosts
        self.retried = retried
        self.untouched = untouched
        self.answer = answer
        self.clock = clock
        self._host = host

    def host(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Host:
        name = self._host if isinstance(self._host, str) else self._host(*arguments, **named)
        return self.hosts.host(name, self.clock())


class _Throttled:
    """Stands in front of a client, or of a part of one."""

    def __init__(self, client: Any, shared: _Shared) -> None:
        self._throttled_client = client
        self._throttled_shared = shared

    def __getattr__(self, name: str) -> Any:
        shared = self._throttled_shared
        attribute = getattr(self._throttled_client, name)
        if name.startswith("_") or name in shared.untouched:
            return attribute
        if not callable(attribute):
            return _Throttled(attribute, shared) if _has_async_methods(attribute.__class__) else attribute

        def call(*arguments: Any, **named: Any) -> Any:
            made = attribute(*arguments, **named)  # nothing has been sent before it is awaited
            if any(hasattr(made, method) for method in ("__await__", "__aenter__", "__aiter__")):
                again = (lambda: attribute(*arguments, **named)) if name in shared.retried else None
                return _Call(shared, shared.host(arguments, named), made, again)
            return made

        return call

    async def __aenter__(self) -> "_Throttled":
        entered = await self._throttled_client.__aenter__()
        return self if entered is self._throttled_client else _Throttled(entered, self._throttled_shared)

    async def __aexit__(self, *error: Any) -> Any:
        return await self._throttled_client.__aexit__(*error)


@lru_cache(maxsize=1000)
def _has_async_methods(kind: type) -> bool:
    return any(
        inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
        for parent in kind.__mro__
        for name, member in vars(parent).items()
        if not name.startswith("_")
    )


class _Made(Protocol):
    """What a call returned, set going: its first value tells how the host answered."""

    async def start(self, made: Any) -> Any: ...
    async def drop(self, made: Any) -> None: ...


class _Awaited:
    async def start(self, made: Any) -> Any:
        return await made

    async def drop(self, made: Any) -> None:
        pass


class _Entered:
    async def start(self, made: Any) -> Any:
        return await made.__aenter__()

    async def drop(self, made: Any) -> None:
        await made.__aexit__(None, None, None)


_END = object()


class _Iterated:
    async def start(self, made: Any) -> Any:
        return await anext(made, _END)

    async def drop(self, made: Any) -> None:
        if hasattr(made, "aclose"):
            await made.aclose()


class _Call(Coroutine[Any, Any, Any], AbstractAsyncContextManager[Any]):
    """One call; it may be awaited, made a task, entered, or iterated over, as what the client returned may be."""

    def __init__(self, shared: _Shared, host: Host, made: Any, again: Callable[[], Any] | None) -> None:
        self.shared = shared
        self.made = made
        self.again = again
        self._host = host
        self._place: Place | None = None
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._running().__await__()

    def send(self, value: Any) -> Any:  # this and the next two are what makes it a coroutine, for create_task()
        return self._running().send(value)

    def throw(self, *error: Any) -> Any:
        return self._running().throw(*error)

    def close(self) -> None:
        self._running().close()

    def _running(self) -> Coroutine[Any, Any, Any]:
        if self._coroutine is None:
            self._coroutine = self._awaited()
        return self._coroutine

    async def _awaited(self) -> Any:
        try:
            return await self._start(_Awaited())
        finally:
            self._release()

    async def __aenter__(self) -> Any:
        return await self._start(_Entered())

    async def __aexit__(self, *error: Any) -> Any:
        try:
            return await self.made.__aexit__(*error)
        finally:
            self._release()

    async def __aiter__(self) -> AsyncIterator[Any]:
        if hasattr(self.made, "__aiter__"):
            self.made = aiter(self.made)
        try:
            value = await self._start(_Iterated())
            while value is not _END:
                yield value
                value = await anext(self.made, _END)
        finally:
            try:
                await _Iterated().drop(self.made)
            finally:
                self._release()

    async def _start(self, kind: _Made) -> Any:
        shared, sending = self.shared, _Sending(self, kind)
        is_replayable = self.again is not None  # by the method's name here, so all are GET to the flow
        try:
            self._place = await drive_async(
                self._host, sending, shared.clock(), shared.clock, method="GET", is_replayable=is_replayable
            )
        finally:
            if not sending.is_sent and isinstance(self.made, Coroutine):
                self.made.close()  # it never will be awaited
        if sending.error is not None:
            self._release()
            raise sending.error
        return sending.value

    def _release(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            with self._host.lock:
                self._host.release(place)


class _Sending:
    """The call as an attempt: what the client returned is set going, or made again and set going."""

    def __init__(self, call: _Call, kind: _Made) -> None:
        self._call = call
        self._kind = kind
        self.is_sent = False
        self.value: Any = None
        self.error: Exception | None = None

    async def send(self) -> Answer:
        call = self._call
        if self.is_sent and call.again is not None:
            call.made = call.again()
        self.is_sent = True
        outcome: Any
        try:
            outcome = self.value = await self._kind.start(call.made)
        except Exception as error:
            outcome = self.error = error
        now = call.shared.clock()
        answer = call.shared.answer(outcome, now)
        if answer is None and self.error is not None:
            raise self.error
        return answer or Answer(now, 200)

    async def discard(self) -> None:
        if self.error is None:
            await self._kind.drop(self._call.made)
        self.value = self.error = None
