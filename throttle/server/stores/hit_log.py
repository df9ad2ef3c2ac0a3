"""The hits held under one rule, for a million callers, in bounded memory and without a stall.

A caller's hits are one `bytes`: the times at which each will leave, eight big-endian bytes a hit, oldest first, so that
they compare as numbers do. Keys are ints. Neither concerns the garbage collector, and shards of about 1,000 callers
keep each growth of a dict and each clearing up short (one dict of 700,000 entries stalls 119 ms when it grows; making
room in a shard of 16,000 took 5 ms, in one of 1,000 a quarter of a millisecond).
"""

STAMP = 8
"""bytes a hit"""
SHARDS = 64
"""at least"""
CALLERS_A_SHARD = 1024
BYTES_A_CALLER = 150
"""with one hit, all told: 127 measured, in dicts as full as they are on average"""


DEEP = 32 * STAMP
"""bytes of a caller's hits from which it pays to find the expired by halving"""


def unexpired(log: bytes, after: bytes) -> bytes:
    """The hits that leave at `after` or later; found by halving, since a deep stack may be over all at once."""
    if log[-STAMP:] < after:
        return b""
    over, left = 0, len(log) // STAMP - 1
    while over < left:
        middle = (over + left) // 2
        if log[middle * STAMP : (middle + 1) * STAMP] < after:
            over = middle + 1
        else:
            left = middle
    return log[over * STAMP :]


class Shard:
    """The hits of some of the callers, in two generations.

    What is written goes to `young`. When a window is over, or `young` is full, `old` goes and `young` becomes old.
    Before its time an old entry is dropped only for want of room: callers seen once first, those who are refused
    last (up to a generation of them stay).
    """

    __slots__ = ("old", "room", "turn_at", "window", "young")

    def __init__(self, room: int) -> None:
        self.young: dict[int, bytes] = {}
        self.old: dict[int, bytes] = {}
        self.room = room
        """entries of `young` before a turn; at most three times as many are held in all"""
        self.turn_at = 0
        self.window = 0
        """microseconds that a hit may be held here: the longest of the rules that share the name"""

    def find(self, key: int) -> bytes:
        """The hits held under a key, those included that have expired since they were written."""
        log = self.young.get(key)
        return self.old.get(key, b"") if log is None else log

    def hold(self, key: int, log: bytes, now: int, full: int) -> None:
        """Write a caller's hits down."""
        if now >= self.turn_at or (len(self.young) >= self.room and key not in self.young):
            self.turn(now, full)
        self.young[key] = log

    def turn(self, now: int, full: int) -> None:
        """Make room: forget the old generation, but those in it who are still to be remembered."""
        if now < self.turn_at:
            kept = self._to_be_remembered(now.to_bytes(STAMP, "big"), full)
            kept.update(self.young)
            self.old = kept
        else:
            # All of the old has expired; the young too, if nobody wrote here for a whole window.
            self.old = self.young if now < self.turn_at + self.window else {}
        self.young, self.turn_at = {}, now + self.window

    def _to_be_remembered(self, stamp: bytes, full: int) -> dict[int, bytes]:
        young, room = self.young, self.room
        refused = {
            key: log for key, log in self.old.items() if len(log) >= full and log[-STAMP:] > stamp and key not in young
        }
        if len(refused) > room:
            return dict(list(refused.items())[-room:])
        for key, log in self.old.items():
            if len(refused) >= room:
                break
            if STAMP < len(log) < full and log[-STAMP:] > stamp and key not in young:
                refused[key] = log
        return refused


class HitLog:
    """The hits held under one rule's name."""

    __slots__ = ("shards",)

    def __init__(self, max_callers: int) -> None:
        # Many shards are an odd number: the keys of each must differ in their low bits, by which a dict spreads them
        # (with 512 shards of 20 keys a look-up took four times as long as with 513).
        count = max(SHARDS, max_callers // CALLERS_A_SHARD | 1)
        self.shards = [Shard(1) for _ in range(count)]
        self.hold_at_most(max_callers)

    def hold_at_most(self, max_callers: int) -> None:
        """From the next turn of each shard on."""
        room = max(1, max_callers // (3 * len(self.shards)))
        for shard in self.shards:
            shard.room = room

    def hold_for(self, window: int) -> None:
        """Hits may be held so many microseconds: the limits may change, and two sites may share a store."""
        for shard in self.shards:
            shard.window = max(shard.window, window)

    def __len__(self) -> int:
        return sum(len(shard.young.keys() | shard.old.keys()) for shard in self.shards)
