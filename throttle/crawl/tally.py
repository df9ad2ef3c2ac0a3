"""What all results come to, in numbers; bounded, however many hosts there are."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from throttle.crawl.result import Problem, Result

HOSTS_MAX, BROKEN_MAX = 10_000, 1_000
OTHERS = "(others)"


@dataclass(slots=True)
class HostTally:
    """Seconds are those of the last requests of its URLs, without what was waited for their turn."""

    urls: int = 0
    broken: int = 0
    tries: int = 0
    refused: int = 0
    """tries beyond the first: the host refused or failed, and was asked again"""
    seconds: float = 0.0
    slowest: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0

    def add(self, result: Result) -> None:
        self.urls += 1
        self.broken += result.is_broken
        self.tries += result.tries
        self.refused += max(0, result.tries - 1 - len(result.redirects))
        self.seconds += result.seconds
        self.slowest = max(self.slowest, result.seconds)
        if result.fetched_at:
            self.first_at = min(self.first_at or result.fetched_at, result.fetched_at)
            self.last_at = max(self.last_at, result.fetched_at)

    @property
    def rate(self) -> float | None:
        """URLs a second, from the first result to the last; None for a single one."""
        span = self.last_at - self.first_at
        return (self.urls - 1) / span if self.urls > 1 and span > 0 else None


@dataclass(slots=True)
class Tally:
    urls: int = 0
    broken: int = 0
    disallowed: int = 0
    earlier: int = 0
    bytes_read: int = 0
    tries: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    hosts: dict[str, HostTally] = field(default_factory=dict)
    broken_results: list[Result] = field(default_factory=list)
    """the first thousand, without their data"""

    def add(self, result: Result) -> None:
        self.urls += 1
        self.earlier += result.is_earlier
        self.bytes_read += result.bytes_read
        self.tries += result.tries
        if result.status is not None:
            self.statuses[result.status] += 1
        if result.problem is not None:
            self.problems[result.problem.value] += 1
        self.disallowed += result.problem is Problem.DISALLOWED
        if result.host:
            name = result.host if result.host in self.hosts or len(self.hosts) < HOSTS_MAX else OTHERS
            self.hosts.setdefault(name, HostTally()).add(result)
        if result.is_broken:
            self.broken += 1
            if len(self.broken_results) < BROKEN_MAX:
                result.data = None
                self.broken_results.append(result)

    def slowest_hosts(self, count: int) -> list[tuple[str, HostTally]]:
        """Those that took longest from their first result to their last."""
        return sorted(self.hosts.items(), key=lambda one: one[1].first_at - one[1].last_at)[:count]

    def as_dict(self) -> dict[str, Any]:
        return {
            "urls": self.urls,
            "fine": self.urls - self.broken - self.disallowed,
            "broken": self.broken,
            "disallowed": self.disallowed,
            "earlier": self.earlier,
            "requests": self.tries,
            "bytes_read": self.bytes_read,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "problems": dict(self.problems.most_common()),
            "hosts": {
                name: {
                    "urls": host.urls,
                    "broken": host.broken,
                    "tried_again": host.refused,
                    "mean_seconds": host.seconds / host.urls,
                    "slowest_seconds": host.slowest,
                    "urls_a_second": host.rate,
                }
                for name, host in self.slowest_hosts(20)
            },
        }
