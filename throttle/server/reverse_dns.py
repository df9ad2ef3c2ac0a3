"""Forward-confirmed reverse DNS, off the request path: an address's name, and whether that name has the address.

Whoever runs an address's reverse zone can call it anything, so the name alone proves nothing: it must be one of the
operator's, and resolve back. No name is looked up but an operator's, so nobody can make us ask for theirs.
"""

import asyncio
import re
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol

from throttle.server.address import packed_address
from throttle.server.crawler_operators import Operator
from throttle.server.evidence import Finding

WORKERS = 4
THREADS = 16
"""of the system's resolver; more than workers, who go on when they have given up a question that hangs"""
QUEUED = 256
QUEUED_OF_A_NETWORK = 8
"""questions that wait about one /24 of IPv4 or /48 of IPv6: who has one could ask about a new address with each hit,
and keep out the questions about others"""
SECONDS = 2.0
"""for both look-ups of one address, together"""
REST = 0.02
"""seconds between two of a worker's look-ups, so that no flood of callers becomes one of questions: 200 a second"""

_HOST = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62}\.)+[a-z]{2,24}")


class Resolver(Protocol):
    """Asks DNS. Both raise OSError where there is no answer now, as opposed to the answer that there is none."""

    async def names(self, address: str) -> Sequence[str]:
        """The names of an address; none if it has none."""

    async def addresses(self, name: str) -> Sequence[str]:
        """The addresses of a name; none if it has none."""


class SystemResolver:
    """The machine's own resolver, in threads of its own: one that hangs holds up nobody else, nor the process's end.

    (So no pool: Python waits for the threads of one as it ends, and an address's zone may be such that its name takes
    half a minute not to come.)
    """

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(THREADS)

    async def names(self, address: str) -> Sequence[str]:
        return await self._asked(_names, address)

    async def addresses(self, name: str) -> Sequence[str]:
        return await self._asked(_addresses, name)

    async def _asked(self, question: Callable[[str], list[str]], text: str) -> list[str]:
        if not self._free.acquire(blocking=False):
            raise OSError(f"{THREADS} questions still wait for an answer")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()

        def ask() -> None:
            try:
                found: list[str] | Exception = question(text)
            except Exception as error:
                found = error
            self._free.release()
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, answer, found)

        try:
            threading.Thread(target=ask, name="throttle-dns", daemon=True).start()
        except RuntimeError as error:  # the machine has no thread to give
            self._free.release()
            raise OSError(str(error)) from error
        return await answer


def _settle(answer: asyncio.Future[list[str]], found: list[str] | Exception) -> None:
    if answer.done():  # given up
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def _names(address: str) -> list[str]:
    try:
        return [socket.getnameinfo((address, 0), socket.NI_NAMEREQD)[0]]
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            return []
        raise
    except UnicodeError:
        return []  # whatever it is, it is no operator's name


def _addresses(name: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            return []
        raise


def is_host_of(operator: Operator, name: str) -> bool:
    """The name is one of the operator's, compared without case and without a dot at its end."""
    name = name.lower().removesuffix(".")
    if len(name) > 253 or not _HOST.fullmatch(name):
        return False
    for host in operator.hosts:
        start, _, end = host.partition("*")  # the end begins with a dot: evilgooglebot.com is not *.googlebot.com
        if len(name) > len(start) + len(end) and name.startswith(start) and name.endswith(end):
            return True
    return False


async def confirmed(resolver: Resolver, operator: Operator, address: str) -> bool | None:
    """The address has one of the operator's names, and that name has the address. None if it has no name at all.

    Raises OSError for no answer.
    """
    packed = packed_address(address)
    names = list(await resolver.names(address))[:8]
    for name in names:
        if is_host_of(operator, name):
            found = await resolver.addresses(name.lower().removesuffix("."))
            if any(packed_address(one) == packed for one in found):
                return True
    return False if names else None


def _network(address: str) -> bytes:
    packed = packed_address(address) or b""
    return packed[:3] if len(packed) == 4 else packed[:6]


class ReverseDns:
    """Questions wait in a short queue, and few are asked at a time; `answered` is told each answer.

    VERIFIED; FORGED, where DNS knows better; UNKNOWN where it had no answer. That an address has no name counts only
    once some address had one: there are resolvers that know nothing of the world outside, and say so of all of it.
    """

    def __init__(
        self,
        resolver: Resolver,
        answered: Callable[[Operator, str, Finding], None],
        *,
        workers: int = WORKERS,
        queued: int = QUEUED,
        seconds: float = SECONDS,
        rest: float = REST,
    ) -> None:
        self._resolver = resolver
        self._answered = answered
        self._workers = workers
        self._queued = queued
        self._seconds = seconds
        self._rest = rest
        self._has_found_a_name = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._queue: deque[tuple[Operator, str]] = deque()
        self._waiting: set[tuple[str, str]] = set()
        self._of_network: Counter[bytes] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, operator: Operator, address: str) -> bool:
        """Queue a question, unless it is queued already; False where there is no room for it. Returns at once."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if loop is not self._loop:  # the tasks of a loop that is gone never end
            self._loop = loop
            self._start_over()
        key = (operator.name, address)
        if key in self._waiting:
            return True
        network = _network(address)
        if len(self._queue) >= self._queued or self._of_network[network] >= QUEUED_OF_A_NETWORK:
            return False
        self._of_network[network] += 1
        self._waiting.add(key)
        self._queue.append((operator, address))
        if len(self._tasks) < self._workers:
            self._start(self._work())
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        while self._queue:
            operator, address = self._queue.popleft()
            self._of_network -= Counter((_network(address),))  # which drops those of which none is left
            finding = await self._finding(operator, address)
            self._waiting.discard((operator.name, address))
            self._answered(operator, address, finding)
            await asyncio.sleep(self._rest)

    async def _finding(self, operator: Operator, address: str) -> Finding:
        try:
            async with asyncio.timeout(self._seconds):
                is_confirmed = await confirmed(self._resolver, operator, address)
        except Exception:  # a resolver may fail in ways of its own, and none of them says anything of the caller
            return Finding.UNKNOWN
        if is_confirmed is None and not self._has_found_a_name:
            return Finding.UNKNOWN
        self._has_found_a_name = True
        return Finding.VERIFIED if is_confirmed else Finding.FORGED

    def close(self) -> None:
        """Ask no more."""
        for task in list(self._tasks):
            task.cancel()
        self._start_over()
