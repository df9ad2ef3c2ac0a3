"""What an answer's fields tell, read in one pass over the raw fields; most answers tell nothing.

Every field is hostile: long, binary, repeated. What is malformed tells nothing.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter

from throttle.client.answer import ENDING_BY_STATUS, Answer
from throttle.rate_limit_fields import quota_told
from throttle.retry_after import retry_after_seconds

_READ = frozenset(
    {
        b"retry-after",
        b"age",
        b"ratelimit",
        b"ratelimit-policy",
        b"ratelimit-limit",
        b"ratelimit-remaining",
        b"ratelimit-reset",
        b"x-ratelimit-limit",
        b"x-ratelimit-remaining",
        b"x-ratelimit-reset",
        b"cf-mitigated",
        b"x-amzn-waf-action",
    }
)
_PROBLEM = b"application/problem+json"
# Where a problem says more than the status does (`soft_block`).
PROBLEM_STATUSES = frozenset({403, 429, 503})
_name = itemgetter(0)
PLAIN_LENGTH_MAX = 65_536  # of what a compressed start says; a bomb says more


def tells_nothing(status: int, fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """It was served, and that is all: so are nearly all answers, and of these no `Answer` need be made."""
    return status not in ENDING_BY_STATUS and _READ.isdisjoint(map(bytes.lower, map(_name, fields)))


def answer_told(
    at: float,
    status: int,
    fields: Iterable[tuple[bytes, bytes]],
    is_whole: bool = False,
    *,
    wall_clock: Callable[[], float] = time.time,
) -> Answer:
    """`fields` are raw names and values; `is_whole` when a caller's own rule wants to see all of them."""
    if not is_whole and status not in PROBLEM_STATUSES and _READ.isdisjoint(map(bytes.lower, map(_name, fields))):
        return Answer(at, status)
    told: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name_read, value_read = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name_read not in told:
            told[name_read] = value_read
        elif name_read not in ("retry-after", "date", "age"):  # of these the first; lists are one list (RFC 9110, 5.3)
            told[name_read] += ", " + value_read
    now = wall_clock()
    retry_after = retry_after_seconds(
        told.get("retry-after"), date=told.get("date"), age=told.get("age"), wall_clock=now
    )
    return Answer(at, status, retry_after, quota_told(told, wall_clock=now), told)


def is_body_telling(answer: Answer, is_whole: bool) -> bool:
    """Its body may tell a block from a limit: a problem's does, and a caller's own rule may look at any error's."""
    if is_whole:
        return isinstance(answer.status, int) and answer.status >= 400
    return answer.status in PROBLEM_STATUSES and answer.headers.get("content-type", "").startswith(_PROBLEM.decode())


def plain(start: bytes, fields: Mapping[str, str]) -> bytes:
    """The start of a body as it reads; what is in another coding than gzip or deflate is left as it is."""
    if fields.get("content-encoding", "").strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return start
    try:
        return zlib.decompressobj(wbits=47).decompress(start, PLAIN_LENGTH_MAX)  # 47: either, told by its first bytes
    except zlib.error:
        return start
