"""The memory of verdicts: what stays, what goes, and how large it grows."""

import tracemalloc

import pytest

from throttle.server.agent_cache import AgentCache
from throttle.server.agents import Agent, CallerClass, Classifier


def count_judgements(entries: int = 4096, size: int = 1 << 20) -> tuple[AgentCache, list[bytes]]:
    judged: list[bytes] = []

    def note(raw: bytes) -> Agent:
        judged.append(raw)
        return Agent(CallerClass.ASSUMED_BOT, None, "no browser")

    return AgentCache(note, entries, size), judged


def test_an_agent_seen_before_is_not_judged_again() -> None:
    cache, judged = count_judgements()
    for _ in range(3):
        cache.classify(b"a")
    assert judged == [b"a"]


def test_an_agent_in_use_outlives_a_flood_of_invented_ones() -> None:
    cache, judged = count_judgements(entries=100)
    for number in range(10_000):
        cache.classify(b"invented %d" % number)
        if number % 20 == 0:
            cache.classify(b"in use")
    assert judged.count(b"in use") == 1


def test_an_agent_out_of_use_is_forgotten() -> None:
    cache, judged = count_judgements(entries=10)
    for number in range(20):
        cache.classify(b"%d" % number)
    cache.classify(b"0")
    assert judged.count(b"0") == 2


def test_the_caches_memory_is_bounded_whatever_agents_come() -> None:
    verdict = Agent(CallerClass.ASSUMED_BOT, None, "no browser")
    cache = AgentCache(lambda raw: verdict)
    tracemalloc.start()
    try:
        for number in range(20_000):
            cache.classify(b"%d " % number * 200)
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 << 20


@pytest.mark.parametrize(("entries", "size"), [(1, 1 << 20), (0, 1 << 20), (-5, 1 << 20), (4096, 100)])
def test_an_impossible_cache_is_one_clear_error(entries: int, size: int) -> None:
    with pytest.raises(ValueError, match="needs at least"):
        Classifier(entries=entries, size=size)
