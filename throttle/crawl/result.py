"""What became of one URL: either an answer with its status, or why there is none."""

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Problem(Enum):
    """Why a URL has no answer, or not a whole one."""

    MALFORMED = "malformed"  # no URL that can be fetched
    DISALLOWED = "disallowed"  # by robots.txt
    ROBOTS_UNREACHABLE = "robots unreachable"  # 5xx or nothing: then nothing may be fetched (RFC 9309, 2.3.1.4)
    CONNECT = "connection error"
    TIMEOUT = "time-out"
    LOOP = "redirect loop"
    REDIRECTS = "too many redirects"
    BLOCKED = "blocked"  # a wall, not a limit
    RESTS = "asks for too long a rest"
    EXTRACT = "extract failed"  # the caller's own function raised


@dataclass(frozen=True, slots=True)
class Redirect:
    status: int
    url: str
    """to where"""


@dataclass(slots=True)
class Result:
    """`status` and `problem` may both be set: a body that never ended has a status, and timed out."""

    url: str
    """as it was given; what is no URL, too, with what cannot be printed escaped"""
    host: str = ""
    """the politeness key"""
    status: int | None = None
    problem: Problem | None = None
    detail: str = ""
    """a sentence for people"""
    final_url: str = ""
    redirects: tuple[Redirect, ...] = ()
    content_type: str = ""
    bytes_read: int = 0
    is_truncated: bool = False
    """the body was longer than what is read"""
    seconds: float = 0.0
    """of the last request, from its leaving to the end of its body"""
    tries: int = 0
    """requests sent for it, robots.txt apart"""
    fetched_at: float = 0.0
    """seconds since 1970, for people"""
    depth: int = 0
    found_on: str = ""
    """the page that links to it, when links are followed"""
    data: Any = None
    """what `extract` made of the page"""
    is_earlier: bool = False
    """written down by an earlier run, or another process"""
    url_id: int = 0
    host_id: int = 0

    @property
    def is_broken(self) -> bool:
        """No answer below 400. What robots.txt disallows was not tried, so it is not broken."""
        if self.problem is Problem.DISALLOWED:
            return False
        return self.problem is not None or self.status is None or self.status >= 400

    def as_dict(self) -> dict[str, Any]:
        """For JSON: names as here, enums by value."""
        table = asdict(self)
        table["problem"] = None if self.problem is None else self.problem.value
        table["redirects"] = [[hop.status, hop.url] for hop in self.redirects]
        table["is_broken"] = self.is_broken
        del table["url_id"], table["host_id"], table["is_earlier"]
        return table


def redirects_json(redirects: tuple[Redirect, ...]) -> str | None:
    return json.dumps([[hop.status, hop.url] for hop in redirects]) if redirects else None


def redirects_from(text: str | None) -> tuple[Redirect, ...]:
    return tuple(Redirect(status, url) for status, url in json.loads(text)) if text else ()
