"""Sets of addresses from published lists, asked in about a microsecond.

A list is JSON of any shape, a CSV whose first field is a network, or one network a line. It is somebody else's text:
bounded in size and count, and refused as a whole where a network is so wide that something must be wrong.
"""

import json
import re
import socket
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

LARGEST = 5_000_000
"""bytes of a list"""
MOST = 100_000
"""networks in a list"""
NARROWEST = {32: 8, 128: 16}
"""bits that a network must have at least, by the bits of an address"""

Range = tuple[int, int, int]
"""bits of an address (32 or 128), first address, last address"""

_NETWORK = re.compile(r"[0-9A-Fa-f:.]{2,45}(?:/\d{1,3})?")


class RangesError(ValueError):
    """A list that can't be used: one line that says why."""


def ranges_in(raw: bytes) -> list[Range]:
    """The networks that a list names. Raises RangesError for one that is too large, too wide, or has none."""
    if len(raw) > LARGEST:
        raise RangesError(f"larger than {LARGEST:,} bytes")
    text = raw.decode("utf-8-sig", "replace")
    is_json = text.lstrip()[:1] in ("{", "[")
    found: list[Range] = []
    for word in _words_of_json(text) if is_json else _first_fields(text):
        one = _range_of(word)
        if one is not None:
            found.append(one)
            if len(found) > MOST:
                raise RangesError(f"more than {MOST:,} networks")
    if not found:
        raise RangesError("there is no network in it")
    return found


def _words_of_json(text: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(text)]
    except RecursionError:
        raise RangesError("nested too deep") from None
    except ValueError as error:
        raise RangesError(f"not JSON: {error}") from None
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _first_fields(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield line.partition("#")[0].partition(",")[0]


def _range_of(word: str) -> Range | None:
    word = word.strip().strip('"')
    if len(word) > 49 or not _NETWORK.fullmatch(word):
        return None
    address, _, length = word.partition("/")
    if "." not in address and ":" not in address:
        return None
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except OSError:
        return None
    bits = 8 * len(packed)
    prefix = int(length) if length else bits
    if prefix > bits:
        return None
    if prefix < NARROWEST[bits]:
        raise RangesError(f"{word} is wider than any crawler's network")
    host = bits - prefix
    first = int.from_bytes(packed, "big") >> host << host
    return bits, first, first + (1 << host) - 1


class AddressRanges:
    """Ranges merged and sorted, for a look-up by halving."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._firsts: dict[int, list[int]] = {4: [], 16: []}
        self._lasts: dict[int, list[int]] = {4: [], 16: []}
        for bits, first, last in sorted(ranges):
            firsts, lasts = self._firsts[bits // 8], self._lasts[bits // 8]
            if lasts and first <= lasts[-1] + 1:
                lasts[-1] = max(lasts[-1], last)
            else:
                firsts.append(first)
                lasts.append(last)

    def __len__(self) -> int:
        return sum(len(firsts) for firsts in self._firsts.values())

    def __contains__(self, packed: bytes) -> bool:
        """Whether an address, of 4 or 16 bytes, is in one of them."""
        value = int.from_bytes(packed, "big")
        place = bisect_right(self._firsts[len(packed)], value) - 1
        return place >= 0 and value <= self._lasts[len(packed)][place]
