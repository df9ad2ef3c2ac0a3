"""The hits held under one rule, for a million callers, in bounded memory and without a stall.

A caller's hits are one `bytes`: the times at which each will leave, eight big-endian bytes a hit, oldest first, so that
they compare as numbers do. Keys are ints. Neither concerns the garbage collector, and 64 shards keep each growth of a
dict short (one dict of 700,000 entries stalls 119 ms when it grows).
"""

STAMP = 8
"""bytes a hit"""
SHARDS = 64


class Shard:
    """The hits of a 64th of the callers, in two generations.

    What is written goes to `young`. When a window is over, or `young` is full, `old` goes and `young` becomes old.
    Before its time an old entry is dropped only for want of room: callers seen once first, those who are refused
    last (up to a generation of them stay).
    """

    __slots__ = ("old", "room", "turn_at", "young")

    def __init__(self, room: int) -> None:
        self.young: dict[int, bytes] = {}
        self.old: dict[int, bytes] = {}
        self.room = room
        """entries of `young` before a turn; at most three times as many are held in all"""
        self.turn_at = 0

    def find(self, key: int) -> bytes:
        """The hits held under a key, those included that have expired since they were written."""
        log = self.young.get(key)
        return self.old.get(key, b"") if log is None else log

    def hold(self, key: int, log: bytes, now: int, window: int, full: int) -> None:
        """Write a caller's hits down."""
        if now >= self.turn_at or (len(self.young) >= self.room and key not in self.young):
            self.turn(now, window, full)
        self.young[key] = log

    def turn(self, now: int, window: int, full: int) -> None:
        """Make room: forget the old generation, but those in it who are still to be remembered."""
        kept: dict[int, bytes] = {}
        if now < self.turn_at:
            kept = self._to_be_remembered(now.to_bytes(STAMP, "big"), full)
        elif now >= self.turn_at + window:
            self.young = {}  # nobody wrote here for a whole window
        kept.update(self.young)
        self.old, self.young, self.turn_at = kept, {}, now + window

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
        self.shards = [Shard(max(1, max_callers // (3 * SHARDS))) for _ in range(SHARDS)]

    def __len__(self) -> int:
        return sum(len(shard.young.keys() | shard.old.keys()) for shard in self.shards)
