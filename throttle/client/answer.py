"""What came back for a request, and whether it says anything about the pace: one table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from throttle.rate_limit_fields import Quota


class Ending(Enum):
    SERVED = "served"  # the host bears this pace
    DROPPED = "dropped"  # it does not
    FAILED = "failed"  # neutral alone, a drop when it persists
    NEUTRAL = "neutral"  # says nothing


class Failure(Enum):
    """No answer at all."""

    CONNECT = "connection error"
    TIMEOUT = "time-out"


# 403 and 404 are about the page, not the pace (StormCrawler leaves 403 out too). A 500 may be one broken page;
# Google slows down when they persist, and so do gateways' 502 and 504.
ENDING_BY_STATUS: dict[int | Failure, Ending] = {
    **dict.fromkeys(Failure, Ending.DROPPED),
    429: Ending.DROPPED,
    503: Ending.DROPPED,
    500: Ending.FAILED,
    502: Ending.FAILED,
    504: Ending.FAILED,
    408: Ending.NEUTRAL,
    **dict.fromkeys((401, 403, 407, 451), Ending.NEUTRAL),
}
FAILED_IN_A_ROW_MAX = 5


@dataclass(slots=True)
class Answer:
    """`status` 100 to 599, or a Failure. Seconds of waiting that were told are already read out of the fields."""

    at: float
    status: int | Failure
    retry_after: float | None = None
    quota: Quota | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def ending(self) -> Ending:
        # Another 4xx was served, quickly and completely: the pace was right, whatever was asked.
        return ENDING_BY_STATUS.get(self.status, Ending.SERVED)
