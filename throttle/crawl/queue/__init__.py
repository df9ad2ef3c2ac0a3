"""What must survive a crash: which URLs a job has, which are done, and what became of them.

A queue leases *hosts*, not URLs: all URLs of a host belong to one worker at a time, so its pace is one process's and
nobody has to share it. Each URL gets exactly one result; the first that is recorded stands.
Methods block; a job calls them on one thread of its own, so a queue need not be thread-safe.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from throttle.crawl.result import Result


class QueueError(Exception):
    """The queue cannot be read or written; the message says why and what to do."""


class NewUrl(NamedTuple):
    """`key` tells URLs apart: two that differ in their fragments only are one. `problem` is what keeps it from being
    fetched at all; then `key` is the line itself."""

    key: str
    url: str
    host: str
    depth: int = 0
    found_on: str = ""
    problem: str = ""


class Pending(NamedTuple):
    url_id: int
    url: str
    depth: int
    found_on: str


@dataclass(slots=True)
class Claim:
    """A host that is this worker's now, and the first of its URLs."""

    host_id: int
    host: str
    pending: int
    first: list[Pending] = field(default_factory=list)


class Added(NamedTuple):
    new: int
    known: int
    per_host: dict[int, int]
    """by host id: how many were added to it, to be fetched"""
    malformed: list[Result]
    """recorded at once"""


class RobotsText(NamedTuple):
    """What is remembered of one robots.txt; `failing_since` when the last tries brought none. Seconds since 1970."""

    origin: str
    read_at: float
    status: int
    text: bytes
    failing_since: float | None = None


class Counts(NamedTuple):
    urls: int
    done: int
    pending: int
    hosts: int
    longest: tuple[tuple[str, int], ...]
    """the hosts with most left, and how much"""


class Queue(Protocol):
    lease_seconds: float
    """a host that is not renewed within is anybody's"""

    def add(self, urls: Sequence[NewUrl]) -> Added:
        """Those that are new; what cannot be fetched is recorded as a result at once."""

    def claim(self, hosts_max: int, window: int) -> list[Claim]:
        """Lease free hosts, those with most left first, each with its first `window` URLs."""

    def load(self, wanted: Iterable[tuple[int, int]], at_most: int) -> dict[int, list[Pending]]:
        """For each (host id, last URL id that is loaded): the next ones."""

    def record(
        self, results: Sequence[Result], urls: Sequence[NewUrl] = (), robots: Sequence[RobotsText] = ()
    ) -> tuple[list[Result], Added]:
        """Results, completion, and the URLs they led to, in one transaction.

        Gives back the results that were the first for their URL, and what was added.
        """

    def renew(self) -> set[int]:
        """The hosts that are still this worker's."""

    def release(self, host_ids: Iterable[int]) -> None: ...

    def counts(self) -> Counts: ...

    def last_recorded(self) -> int:
        """The number of the last result, or 0."""

    def recorded(self, after_id: int, at_most: int) -> list[tuple[int, Result]]:
        """Results in the order in which they were recorded, each with its number."""

    def robots(self, origins: Sequence[str]) -> dict[str, RobotsText]:
        """Those that are remembered."""

    def note(self, name: str, value: Any) -> None:
        """Something about the job as a whole; None forgets it."""

    def noted(self, name: str) -> Any: ...

    def close(self) -> None: ...
