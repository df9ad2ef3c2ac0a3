"""What one request of the crowd came to, read from the answer's status and fields. No I/O."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from throttle.retry_after import retry_after_seconds

REFUSING = (429, 503)
_SLEPT = re.compile(rb'throttle;desc="slept";dur=(\d{1,12})(?!\d)')
_EMPTY_QUOTA = re.compile(rb'"([^"]{1,80})";r=0(?!\d)')


@dataclass(frozen=True, slots=True)
class Answer:
    """Exactly one of three: served; refused, by a rule; failed, for a cause."""

    body: bytes = b""
    refused_by: str | None = None
    """the rule's name; «unnamed» where the answer tells none"""
    failed: str | None = None
    """why there is no answer, or the status of a server's error"""
    retry_after: float | None = None
    """seconds"""
    slept: float | None = None
    """seconds that the site held the request back; None: it did not sleep"""
    status: int = 0
    """0: there is no answer"""
    fields: Mapping[bytes, bytes] = field(default_factory=dict)
    """by lower-case name"""

    @property
    def is_served(self) -> bool:
        return self.refused_by is None and self.failed is None


def read_answer(status: int, fields: Mapping[bytes, bytes], body: bytes) -> Answer:
    """The answer as the report counts it. A 404 is served; 429 and 503 are refusals; other 5xx are failures."""
    timing = fields.get(b"server-timing")
    slept = None if timing is None else _SLEPT.search(timing)
    told = fields.get(b"retry-after")
    return Answer(
        body=body,
        refused_by=_rule(fields, body) if status in REFUSING else None,
        failed=f"status {status}" if status >= 500 and status not in REFUSING else None,
        retry_after=None if told is None else retry_after_seconds(told.decode("latin-1")),
        slept=None if slept is None else int(slept[1]) / 1000,
        status=status,
        fields=fields,
    )


def _rule(fields: Mapping[bytes, bytes], body: bytes) -> str:
    """The rule that refused: robots ask for problem+json (RFC 9457), which names it.

    A page for people does not. There a rule of which nothing is left, in RateLimit, is the one.
    """
    if b"json" in fields.get(b"content-type", b""):
        try:
            named = json.loads(body)["violated-policies"][0]
            return named[:80] if isinstance(named, str) else "unnamed"
        except (ValueError, LookupError, TypeError):
            return "unnamed"
    empty = _EMPTY_QUOTA.search(fields.get(b"ratelimit", b""))
    return empty[1].decode("latin-1") if empty else "unnamed"
