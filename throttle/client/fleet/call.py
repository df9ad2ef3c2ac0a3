"""What a worker says to the ledger, and what it is answered: as they travel. Ages, never times: no two clocks agree."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MICRO = 1_000_000


@dataclass(slots=True)
class Call:
    """One call for one host. Seconds here, microseconds on the way (`ledger.lua` names each)."""

    host: str
    worker: str
    want: int
    at: float
    sightings: list[list[Any]] = field(default_factory=list)
    """what the pace was told, as [kind, time, ...]"""
    dropped_era: int = -1
    """a request was refused, and the worker knew of no later rest than this; -1: none was refused"""
    rest: float = 0.0
    is_told: bool = False
    ended_era: int = -1
    is_steering: bool = False
    rate: float = 1.0
    slots: float = 1.0
    learned: str = ""
    rest_least: float = 0.0

    def arguments(self, now_µs: int, channel: str) -> list[str | int]:
        """`now_µs` 0: by the server's clock."""
        return [
            *(now_µs, self.worker, self.want, packed(self.sightings, self.at), self.dropped_era, _µs(self.rest)),
            *(int(self.is_told), self.ended_era, int(self.is_steering), repr(self.rate), repr(self.slots)),
            *(self.learned, _µs(self.rest_least), channel, self.host),
        ]


@dataclass(slots=True)
class Reply:
    """`start`, `ask_again` and `rest_left` in seconds from when the ledger answered; `seen` oldest first."""

    count: int
    start: float
    gap: float
    ask_again: float
    era: int
    rest_left: float | None
    """0.0: only a scout is awaited; None: the host does not rest"""
    is_scout: bool
    workers: int
    steers: bool
    rate: float
    slots: float
    learned: str
    row: int
    news: str
    told_at: int
    told_rate: float
    follows: bool
    """the turn before the lease's was another's"""
    seen: list["Report"]


@dataclass(slots=True)
class Report:
    """What one worker saw: `sightings` with their ages, `age` seconds ago; and which refusal in a row it was."""

    age: float
    row: int
    is_first: bool
    sightings: list[list[Any]]


@dataclass(slots=True)
class News:
    """Told to all workers at once: a host rests for so long, or (None) goes on."""

    era: int
    rest: float | None
    row: int
    host: str


@dataclass(slots=True)
class RateNews:
    """Told to all workers at once: the rate is another; `told_at` µs on the ledger's clock."""

    told_at: int
    rate: float
    host: str


def reply_from(raw: Sequence[Any]) -> Reply:
    """Raises ValueError for what no ledger of ours has answered."""
    try:
        texts = [part.decode() if isinstance(part, bytes) else str(part) for part in raw]
        now = int(texts[14])
        return Reply(
            count=int(texts[0]),
            start=int(texts[1]) / MICRO,
            gap=int(texts[2]) / MICRO,
            ask_again=int(texts[3]) / MICRO,
            era=int(texts[4]),
            rest_left=_rest(texts[5]),
            is_scout=texts[6] == "1",
            workers=max(1, int(texts[7])),
            steers=texts[8] == "1",
            rate=float(texts[9]),
            slots=float(texts[10]),
            learned=texts[11],
            row=int(texts[12]),
            news=texts[13],
            told_at=int(texts[15]),
            told_rate=float(texts[16]),
            follows=texts[17] == "1",
            seen=[_report(text, now) for text in texts[18:]],
        )
    except (IndexError, TypeError, KeyError) as error:
        raise ValueError(f"the ledger's answer cannot be read: {error}") from None


def news_from(text: str) -> News | RateNews:
    """Raises ValueError."""
    kind, _, told = text.partition(" ")
    if kind == "rate":
        told_at, rate, host = told.split(" ", 2)
        return RateNews(int(told_at), float(rate), host)
    if kind != "rest":
        raise ValueError(f"no news of ours: {text[:80]!r}")
    era, rest, row, host = told.split(" ", 3)
    return News(int(era), _rest(rest), int(row), host)


def packed(sightings: Sequence[Sequence[Any]], at: float) -> str:
    """Each time as its age in microseconds."""
    if not sightings:
        return ""
    rows = [[kind, _µs(at - time), *rest] for kind, time, *rest in sightings]
    return json.dumps(rows, separators=(",", ":"))


def _report(text: str, now: int) -> Report:
    at, row, is_first, sightings = text.split(" ", 3)
    return Report((now - int(at)) / MICRO, int(row), is_first == "1", json.loads(sightings))


def _rest(text: str) -> float | None:
    return None if int(text) < 0 else int(text) / MICRO


def _µs(seconds: float) -> int:
    return max(0, round(seconds * MICRO))
