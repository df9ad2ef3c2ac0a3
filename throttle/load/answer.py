"""What one request of the crowd came to, read from the answer's status and fields. No I/O."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

REFUSING = (429, 503)
_SLEPT = re.compile(r'throttle;desc="slept";dur=(\d+)')
_EMPTY_QUOTA = re.compile(r'"([^"]+)";r=0(?!\d)')


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

    @property
    def is_served(self) -> bool:
        return self.refused_by is None and self.failed is None


def read_answer(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Answer:
    """The answer as the report counts it. A 404 is served; 429 and 503 are refusals; other 5xx are failures."""
    fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    slept = _SLEPT.search(fields.get("server-timing", ""))
    seconds = fields.get("retry-after", "")
    return Answer(
        body=body,
        refused_by=_rule(fields, body) if status in REFUSING else None,
        failed=f"status {status}" if status >= 500 and status not in REFUSING else None,
        retry_after=float(seconds) if seconds.isascii() and seconds.isdecimal() and len(seconds) <= 9 else None,
        slept=int(slept[1]) / 1000 if slept else None,
    )


def _rule(fields: dict[str, str], body: bytes) -> str:
    """The rule that refused: robots ask for problem+json (RFC 9457), which names it.

    A page for people does not. There a rule of which nothing is left, in RateLimit, is the one.
    """
    if "json" in fields.get("content-type", ""):
        try:
            named = json.loads(body)["violated-policies"][0]
            return named if isinstance(named, str) else "unnamed"
        except (ValueError, LookupError, TypeError):
            return "unnamed"
    empty = _EMPTY_QUOTA.search(fields.get("ratelimit", ""))
    return empty[1] if empty else "unnamed"
