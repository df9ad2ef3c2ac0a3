"""The Retry-After field (RFC 9110, 10.2.3): both forms read, seconds written.

It never guesses: what is no clear wait is no wait told, and a wait is never shortened here.
"""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime

# Beyond this a number is a fault or an attack, not a wait: time.sleep() overflows near it.
SECONDS_MAX = 2**31 - 1


def retry_after_seconds(
    value: str | None, *, date: str | None = None, age: str | None = None, wall_clock: float | None = None
) -> float | None:
    """Seconds to wait, or None if the field is absent, malformed, zero or past.

    `value` is `120` or an HTTP date. A date is measured against the answer's own `date`, so that a wrong clock
    on either side does no harm; an answer with an `age` comes from a cache, whose Date is old, so there (and
    without a `date`) it is measured against `wall_clock`, seconds since 1970. With neither, a date says nothing.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():  # "٣".isdigit() is true as well
        seconds = float(value) if len(value) <= 10 else math.inf
        return seconds if 0 < seconds <= SECONDS_MAX else None
    moment = _moment(value)
    if moment is None:
        return None
    reference = _moment(date.strip()) if date is not None and age is None else None
    if reference is None:
        reference = wall_clock
    if reference is None:
        return None
    seconds = moment - reference
    return seconds if 0 < seconds <= SECONDS_MAX else None


def whole_seconds(microseconds: int) -> int:
    """Seconds to write: rounded up, at least 1, so that who returns then is not early."""
    seconds = -(-microseconds // 1_000_000)
    return seconds if seconds > 1 else 1  # on the way of each refusal: half the time of max()


def _moment(value: str) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    if len(value) > 64:  # the longest legal form has 33
        return None
    try:
        parsed = parsedate_to_datetime(value)
        # asctime's form names no zone, and every HTTP date is UTC.
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
