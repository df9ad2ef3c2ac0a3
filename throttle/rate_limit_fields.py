"""RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11): read by one half, written by the other.

`r` is what a caller has left, `t` for how many seconds: within `t` no more than `r` requests under that rule will be
served, and after it at least one more. As this site writes it, that is the time until the oldest counted hit leaves.

Reading is tolerant, bounded, and makes no claim: «remaining» is no promise, and what is malformed is ignored, since
a pace found by itself is better than one taken from a misread field. The forms that came before are read, too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

# -- written


class _Rule(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def at_most(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def policy_value(rules: Iterable[_Rule]) -> bytes:
    """The value of RateLimit-Policy: each timed rule's name, hits `q` and window `w` in whole seconds, rounded up."""
    return ", ".join(f'"{rule.name}";q={rule.at_most};w={-int(-rule.seconds // 1)}' for rule in rules).encode()


def limit_value(quotas: Sequence[tuple[_Rule, int, int]]) -> bytes:
    """The value of RateLimit for quotas of (rule, hits left, microseconds until the oldest hit leaves)."""
    if len(quotas) == 1:
        rule, left, reset = quotas[0]
        return _item(rule.name, left, -(-reset // 1_000_000))
    return b", ".join([_item(rule.name, left, -(-reset // 1_000_000)) for rule, left, reset in quotas])


@lru_cache(maxsize=4096)
def _item(name: str, left: int, seconds: int) -> bytes:
    return f'"{name}";r={left};t={seconds}'.encode()


# -- read

# A hostile host may send megabytes; no honest field comes near these.
FIELD_LENGTH_MAX = 1024
ITEMS_MAX = 16
# sf-integer (RFC 9651, 3.3.1) has at most 15 digits.
_INTEGER = re.compile(r"-?[0-9]{1,15}\Z", re.ASCII)
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z*][A-Za-z0-9_.:/*-]*)|([0-9]{1,15})', re.ASCII)
_SEPARATOR = re.compile(r'"(?:[^"\\]|\\.)*"|[,;]', re.ASCII)

# Larger numbers in X-RateLimit-Reset are seconds since 1970, as GitHub sends them, smaller ones a countdown.
EPOCH_SECONDS_MIN = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Quota:
    """So many requests may be sent within so many seconds, says the host."""

    remaining: int
    seconds: float  # until it is filled up again, by one at least
    limit: int | None = None  # how many it is when full
    window_seconds: float | None = None


def quota_told(headers: Mapping[str, str], *, wall_clock: float | None = None) -> Quota | None:
    """The tightest quota that an answer tells, or None.

    `headers` has lower-case names, as httpx and aiohttp look them up. An answer out of a cache (Age) tells what
    was, so nothing. `wall_clock`, seconds since 1970, is needed only for the X- form's absolute resets.
    """
    if headers.get("age") not in (None, "0"):
        return None
    field = headers.get("ratelimit")
    if field is not None:
        policies = dict(_items(headers.get("ratelimit-policy", "")))
        quotas = [quota for name, numbers in _items(field) if (quota := _quota(numbers, policies.get(name, {})))]
        # Of several that allow nothing now, the longest.
        return min(quotas, key=lambda quota: (quota.remaining / quota.seconds, -quota.seconds), default=None)
    for prefix in ("ratelimit-", "x-ratelimit-"):
        if prefix + "remaining" in headers:
            return _older_quota(headers, prefix, wall_clock)
    return None


def _quota(told: Mapping[str, int], policy: Mapping[str, int]) -> Quota | None:
    remaining, seconds = told.get("r"), told.get("t")
    window = policy.get("w")
    if seconds is None:  # «t» may be left out; the whole window is the careful reading
        seconds = window
    if remaining is None or remaining < 0 or seconds is None or seconds <= 0:
        return None
    return Quota(remaining, float(seconds), policy.get("q"), float(window) if window else None)


def _older_quota(headers: Mapping[str, str], prefix: str, wall_clock: float | None) -> Quota | None:
    remaining = _integer(headers.get(prefix + "remaining"))
    seconds = _integer(headers.get(prefix + "reset"))
    if seconds is not None and seconds >= EPOCH_SECONDS_MIN:
        seconds = None if wall_clock is None else max(1, round(seconds - wall_clock))
    if remaining is None or remaining < 0 or seconds is None or seconds <= 0:
        return None
    return Quota(remaining, float(seconds), _integer(headers.get(prefix + "limit")))


def _integer(value: str | None) -> int | None:
    if value is None:
        return None
    value = value[:FIELD_LENGTH_MAX].split(",", 1)[0].split(";", 1)[0].strip()
    return int(value) if _INTEGER.match(value) else None


def _items(field: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Name and whole-number parameters of each item in a structured list; items that are malformed are left out."""
    if len(field) > FIELD_LENGTH_MAX:
        return
    for count, item in enumerate(_split(field, ",")):
        if count >= ITEMS_MAX:
            return
        name, *parameters = (part.strip() for part in _split(item, ";"))
        matched = _NAME.fullmatch(name)
        if matched is None:
            continue
        yield name, dict(_parameters(parameters))


def _parameters(parts: Iterable[str]) -> Iterator[tuple[str, int]]:
    for part in parts:
        key, _, value = part.partition("=")
        if _INTEGER.match(value):
            yield key, int(value)


def _split(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that stand outside of quotes."""
    start = 0
    for matched in _SEPARATOR.finditer(text):
        if matched.group() == separator:
            yield text[start : matched.start()]
            start = matched.end()
    yield text[start:]
