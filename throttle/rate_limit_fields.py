"""RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11), written by the server half.

`r` is what a caller has left, `t` for how many seconds: within `t` no more than `r` requests under that rule will be
served, and after it at least one more. That is the time until the oldest counted hit leaves.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol


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
