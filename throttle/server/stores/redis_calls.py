"""What is sent to `admit.lua` and `report.lua`: the scripts, their keys, and calls as they travel.

A call is written down when it leaves, so that it carries the books as they stand then.
"""

import asyncio
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any, Protocol

from throttle.server.acquaintances import Acquaintance
from throttle.server.rule import MICROSECONDS, Hashes, Key, LoadRule, Quota, Rule, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import RefusedHits, memory
from throttle.server.stores.resp import command

_HERE = Path(__file__).parent
_FLEET = (_HERE / "fleet.lua").read_text()
SCRIPTS = [_FLEET + (_HERE / name).read_text() for name in ("admit.lua", "report.lua")]
ADMIT, REPORT = (sha1(script.encode()).hexdigest() for script in SCRIPTS)

header = struct.Struct(">QIIQQiQIB16s").pack
"""now plus 1 (0: the server's clock), epoch, running, taken, lease, rank, the sleeper's arrival and room, may sleep,
the sleeper's key"""
HEADER = b"\0" * struct.calcsize(">QIIQQiQIB16s")
NO_KEY = "-" * 16
_SLEEPERS_KEY = b"\xff" * 16
"""stands where it will be, and nowhere in what is UTF-8"""
_ANY = (1 << 32) - 1
_rule = struct.Struct(">BIIQ").pack
_EIGHT_BYTES = (1 << 64) - 1
_hits = struct.Struct(">IQQ").pack
"""at most how many count, microseconds for which one does, and the time here"""
_visit = struct.Struct(">QIQQ")
"""the caller's key, and from when on it is an acquaintance"""


def sleepers_key(key: int | None) -> str:
    """As it travels: under what a sleeper is counted with others."""
    return NO_KEY if key is None else f"{key & _EIGHT_BYTES:016x}"


def ticket(arrival: int, at_most: int, key: int | None) -> str:
    """What one of our sleepers is called on the server."""
    return f"{arrival} {at_most} {sleepers_key(key)}"


class Keys:
    """The keys of one site: all under one hash tag, so that they live on one node of a cluster."""

    def __init__(self, prefix: str, site: str) -> None:
        self._tagged = f"{prefix}:{{{site}}}"
        self.fleet, pause, workers, waiting, called = (
            f"{self._tagged}:{name}" for name in ("fleet", "pause", "workers", "waiting", "called")
        )
        self.shared = (self.fleet, pause, workers, waiting, called)
        self.visits = f"{self.fleet}:visits"
        """the channel on which workers tell each other who visited"""

    def hits(self, rule: str) -> str:
        return f"{self._tagged}:hits:{rule}:"

    def channel(self, worker: str) -> str:
        return f"{self.fleet}:{worker}"


class Books(Protocol):
    """Whose calls they are."""

    worker: str
    keys: Keys

    def header(self, now: int, rank: int, sleeper: Sleeper | None) -> bytes: ...

    def answered(self, ask: "Ask", reply: Any) -> None: ...

    def reported(self, report: "Report", reply: Any) -> None: ...

    def alone(self, ask: "Ask") -> Verdict: ...


@dataclass(slots=True, eq=False)
class Prepared:
    """The rules for one class of caller, in the policy's order, and the ask as it travels but for its numbers."""

    rules: Sequence[Rule | LoadRule]
    tells_quotas: bool
    alone: memory.Prepared
    """for decisions without the server"""
    timed: list[Rule]
    beds: list[Key]
    """the keys by which load rules count sleepers"""
    worker: str = ""
    """for whom the template was written"""
    template: bytes = b""

    def command(self, books: Books, hashes: Hashes, head: bytes) -> bytes:
        if self.worker != books.worker:
            self._write_template(books)
        timed = self.timed
        if len(timed) == 1 and not self.beds:
            return self.template % (hashes[timed[0].key] & _EIGHT_BYTES, head)
        return self.template % (
            *(hashes[rule.key] & _EIGHT_BYTES for rule in timed),
            head,
            *(hashes[key] & _EIGHT_BYTES for key in self.beds),
        )

    def quotas(self, reply: list[Any]) -> list[Quota]:
        told = [(rule, reply[11 + 2 * i], reply[12 + 2 * i]) for i, rule in enumerate(self.timed)]
        return [quota for quota in told if quota[1] >= 0]

    def _write_template(self, books: Books) -> None:
        self.worker = books.worker
        hits = [books.keys.hits(rule.name) + "0" * 16 for rule in self.timed]
        rules = b"".join(_packed(rule) for rule in self.rules)
        keys, beds = [*books.keys.shared, *hits], [_SLEEPERS_KEY] * len(self.beds)
        written = command("EVALSHA", ADMIT, str(len(keys)), *keys, HEADER, books.worker, rules, *beds)
        written = written.replace(b"%", b"%%").replace(_SLEEPERS_KEY, b"%016x")
        for key in hits:
            name = key.encode().replace(b"%", b"%%")
            written = written.replace(name, name[:-16] + b"%016x", 1)
        self.template = written.replace(HEADER, b"%b", 1)


def _packed(rule: Rule | LoadRule) -> bytes:
    """A rule as `admit.lua` reads it."""
    if isinstance(rule, LoadRule):
        a_key = _ANY if rule.sleepers_per_key is None else rule.sleepers_per_key
        return _rule(0, rule.at_most, a_key, rule.sleeping_max)
    return _rule(2 if rule.holds_refused else 1, rule.at_most, rule.from_load, round(rule.seconds * MICROSECONDS))


class Ask:
    """One request's question, and the verdict that it waits for."""

    __slots__ = ("_books", "future", "hashes", "now", "prepared", "rank", "sleeper")

    def __init__(
        self, books: Books, prepared: Prepared, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None
    ) -> None:
        self._books = books
        self.prepared = prepared
        self.hashes = hashes
        self.now = now
        self.rank = rank
        self.sleeper = sleeper
        self.future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()

    def encode(self) -> bytes:
        head = self._books.header(self.now, self.rank, self.sleeper)
        return self.prepared.command(self._books, self.hashes, head)

    def replied(self, reply: Any) -> None:
        self._books.answered(self, reply)

    def given_up(self) -> None:
        if not self.future.done():
            self.future.set_result(self._books.alone(self))


Visit = tuple[int, Acquaintance]


class Visits:
    """Who was served, told to all workers on a channel. Whoever does not hear it knows a visit less."""

    def __init__(self, books: Books, visits: Sequence[Visit]) -> None:
        self._books = books
        self._visits = visits

    def encode(self) -> bytes:
        told = b"".join(_visit.pack(key & _EIGHT_BYTES, *who) for key, who in self._visits)
        return command("PUBLISH", self._books.keys.visits, self._books.worker.encode() + told)

    def replied(self, reply: Any) -> None: ...

    def given_up(self) -> None: ...


def visits_in(message: bytes, worker: str) -> Iterator[Visit]:
    """What another worker than this one told; nothing where it is of another kind."""
    told = message[len(worker) :]
    if len(told) % _visit.size == 0 and not message.startswith(worker.encode()):
        for key, *who in _visit.iter_unpack(told):
            yield key, Acquaintance(*who)


class Report:
    """What the server is told without a question; `words` says what, when it leaves. `keys`: of hits that it is about.

    `now`: as of an ask.
    """

    def __init__(
        self, books: Books, words: Callable[[], list[bytes | str]], keys: Sequence[str] = (), now: int = 0
    ) -> None:
        self._books = books
        self._words = words
        self._keys = keys
        self._now = now
        self.told: list[bytes | str] = []
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """whether it was heard"""

    def encode(self) -> bytes:
        books = self._books
        head = books.header(self._now, 0, None)
        self.told = self._words()
        keys = [*books.keys.shared, *self._keys]
        return command("EVALSHA", REPORT, str(len(keys)), *keys, head, books.worker, *self.told)

    def replied(self, reply: Any) -> None:
        self._books.reported(self, reply)

    def given_up(self) -> None:
        if not self.future.done():
            self.future.set_result(False)


def refused_hits(books: Books, hits: Sequence[RefusedHits], now: int) -> Report:
    """Tells hits that were refused without asking; it leaves in this turn of the loop."""
    keys = [f"{books.keys.hits(rule.name)}{key & _EIGHT_BYTES:016x}" for rule, key, _ in hits]
    packed = [_hits(rule.at_most, round(rule.seconds * MICROSECONDS), now) + leaves for rule, _, leaves in hits]
    return Report(books, lambda: ["hold", *packed], keys, now)
