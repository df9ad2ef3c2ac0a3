"""The hits of many callers in bounded memory: what is forgotten, and in which order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from throttle.server.stores.hit_log import STAMP, HitLog, Shard, unexpired

WINDOW = 100
HITS = 3
FULL = HITS * STAMP
ROOM = 4


def shard_of(room: int) -> Shard:
    shard = Shard(room)
    shard.window = WINDOW
    return shard


def stamps(*leaves: int) -> bytes:
    return b"".join(leave.to_bytes(STAMP, "big") for leave in leaves)


def held(shard: Shard) -> int:
    return len(shard.young.keys() | shard.old.keys())


def hit(shard: Shard, key: int, now: int) -> bool:
    """A store's steps under one rule; a refused hit counts. Whether it is served."""
    log = unexpired(shard.find(key), stamps(now + 1))
    is_served = len(log) < FULL
    shard.hold(key, (log + stamps(now + WINDOW))[-FULL:], now, FULL)
    return is_served


@given(leaves=st.lists(st.integers(0, 20)).map(sorted), now=st.integers(0, 21))
def test_what_is_unexpired_leaves_later_than_now(leaves: list[int], now: int) -> None:
    assert unexpired(stamps(*leaves), stamps(now + 1)) == stamps(*(leave for leave in leaves if leave > now))


def test_a_shard_finds_what_it_holds_and_nothing_for_a_stranger() -> None:
    shard = shard_of(ROOM)
    shard.hold(7, stamps(150), 50, FULL)
    assert shard.find(7) == stamps(150)
    assert shard.find(8) == b""


def test_what_has_expired_goes_by_itself_when_others_come() -> None:
    shard = shard_of(1_000)
    for second in range(500):
        hit(shard, second, second)
        assert held(shard) <= 2 * WINDOW + 1, "those of two windows"


def test_when_nobody_has_come_for_two_windows_the_next_to_come_finds_an_empty_room() -> None:
    shard = shard_of(1_000)
    for key in range(10):
        hit(shard, key, 0)
    hit(shard, 99, 2 * WINDOW)
    assert held(shard) == 1


Hits = list[tuple[int, int]]
"""key, and the wait before it comes"""


def hits_of(callers: int) -> st.SearchStrategy[Hits]:
    """By one byte a hit, since drawing takes most of a property's time."""
    waits = (0, 0, 0, 1, 10, WINDOW - 1, WINDOW, WINDOW + 1)
    drawn = st.binary(min_size=20, max_size=120)
    return drawn.map(lambda drawn: [(byte // 8 % callers, waits[byte % 8]) for byte in drawn])


@settings(max_examples=300)
@given(hits=hits_of(32))
def test_never_more_than_three_times_its_room_is_held(hits: Hits) -> None:
    shard, now = shard_of(ROOM), 0
    for key, wait in hits:
        now += wait
        hit(shard, key, now)
        assert len(shard.young) + len(shard.old) <= 3 * ROOM


@settings(max_examples=300)
@given(hits=hits_of(32))
def test_whatever_is_forgotten_nobody_is_refused_who_should_be_served(hits: Hits) -> None:
    shard, now, all_hits = shard_of(ROOM), 0, Hits()
    for key, wait in hits:
        now += wait
        should_be_served = sum(key == other and now - at < WINDOW for other, at in all_hits) < HITS
        assert hit(shard, key, now) or not should_be_served
        all_hits.append((key, now))


@settings(max_examples=300)
@given(
    hits=st.lists(
        st.tuples(st.integers(1, ROOM), st.sampled_from([0, 1, 10, WINDOW - 1, WINDOW])), min_size=20, max_size=80
    )
)
def test_nothing_is_forgotten_while_there_is_room(hits: Hits) -> None:
    shard, now, all_hits = shard_of(ROOM), 0, Hits()
    for key, wait in hits:
        now += wait
        should_be_served = sum(key == other and now - at < WINDOW for other, at in all_hits) < HITS
        assert hit(shard, key, now) is should_be_served
        all_hits.append((key, now))


# Waits before strangers come; at least five times the room, so that it turns and turns again.
FLOOD = st.binary(min_size=5 * ROOM, max_size=60).map(lambda drawn: [(0, 0, 0, 1, 5)[byte % 5] for byte in drawn])


@settings(max_examples=300)
@given(flood=FLOOD, refused=st.integers(1, ROOM), times=st.integers(1, HITS - 1))
def test_no_flood_sets_free_who_is_refused_as_long_as_they_are_no_more_than_the_room(
    flood: list[int], refused: int, times: int
) -> None:
    shard, now = shard_of(ROOM), 0
    for key in range(refused):
        for _ in range(HITS):
            hit(shard, key, now)
    for stranger, wait in enumerate(flood, start=1_000):
        now += wait
        for _ in range(times):
            hit(shard, stranger, now)
        if now < WINDOW:
            assert all(len(unexpired(shard.find(key), stamps(now + 1))) == FULL for key in range(refused))


@settings(max_examples=300)
@given(flood=FLOOD, several=st.integers(1, ROOM))
def test_callers_seen_once_are_dropped_before_callers_seen_twice(flood: list[int], several: int) -> None:
    shard, now = shard_of(ROOM), 0
    for key in range(several):
        hit(shard, key, now)
        hit(shard, key, now)
    for stranger, wait in enumerate(flood, start=1_000):
        now += wait
        hit(shard, stranger, now)
        if now < WINDOW:
            assert all(shard.find(key) == stamps(WINDOW, WINDOW) for key in range(several))


def test_when_more_are_refused_than_there_is_room_for_the_last_to_come_are_remembered() -> None:
    shard = shard_of(ROOM)
    for key in range(5 * ROOM):
        for _ in range(HITS):
            hit(shard, key, 0)
    remembered = [key for key in range(5 * ROOM) if len(shard.find(key)) == FULL]
    assert len(remembered) >= ROOM
    assert remembered == list(range(5 * ROOM - len(remembered), 5 * ROOM))


def test_a_log_of_hits_counts_its_callers() -> None:
    log = HitLog(max_callers=192)
    assert len(log) == 0
    log.shards[0].hold(64, stamps(150), 50, FULL)
    log.shards[1].hold(1, stamps(150), 50, FULL)
    assert len(log) == 2
