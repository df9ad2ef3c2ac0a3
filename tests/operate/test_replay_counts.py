"""What a replay counts: people, bursts, what other limits would do."""

import random

import pytest

from tests.asgi import CHROME, FEED_READER, GOOGLEBOT
from throttle import Limits
from throttle.operate.access_log.line import UNKNOWN, Hit
from throttle.operate.replay import tally
from throttle.operate.replay.replay import Replay
from throttle.operate.replay.tally import Bursts, Distinct, WorstCallers
from throttle.operate.replay.variants import variants
from throttle.server.agents import CallerClass
from throttle.server.settings import Settings

SECOND = 1_000_000
PERSON, READER, CRAWLER = CallerClass.BROWSER, CallerClass.ASSUMED_BOT, CallerClass.KNOWN_CRAWLER


def hit(second: float, agent: str = CHROME, *, path: str = "/", address: str = "192.0.2.1", took: float = -1) -> Hit:
    duration = UNKNOWN if took < 0 else round(took * SECOND)
    return 10**15 + round(second * SECOND), duration, address, "GET", path, agent.encode(), b""


def replayed(hits: list[Hit], **how: object) -> Replay:
    replay = Replay(how.pop("settings", Settings()), **how)  # type: ignore[arg-type]
    assert replay.run(hits)
    return replay


def test_a_person_hit_twice_counts_once() -> None:
    replay = replayed([hit(0)] * 12 + [hit(1, address="192.0.2.2")])
    people = replay.tallies[PERSON]
    assert (people.requests, people.served, people.refused_by) == (13, 11, {"hit_stack": 2})
    assert (len(people.callers), len(people.callers_refused)) == (2, 1)


def test_files_are_left_out_by_extension_and_counted_beside() -> None:
    replay = replayed([hit(0)] + [hit(0, path="/a.PNG")] * 10)
    assert (replay.files, replay.tallies[PERSON].requests) == (10, 1)
    assert replay.with_files[PERSON].refused_by == {"hit_stack": 1}
    counted = replayed([hit(0)] + [hit(0, path="/a.PNG")] * 10, static_extensions=())
    assert (counted.files, counted.with_files, counted.tallies[PERSON].refused) == (0, {}, 1)


def test_robots_txt_and_exempt_prefixes_are_left_out_as_they_are_live() -> None:
    settings = Settings(exempt_prefixes=("/static",))
    hits = [hit(0, path=path) for path in ("/robots.txt", "/static/x", "/statics")]
    replay = replayed(hits, settings=settings)
    assert (replay.exempt, replay.tallies[PERSON].requests) == (2, 1)


def test_a_forwarded_address_counts_only_behind_a_trusted_proxy() -> None:
    hits = [(*hit(0)[:6], f"198.51.100.{n}".encode()) for n in range(20)]
    assert replayed(hits).tallies[PERSON].refused == 10
    behind = Settings(trusted_proxies=("192.0.2.0/24",))
    assert replayed(hits, settings=behind).tallies[PERSON].refused == 0


def test_api_paths_make_their_callers_api_clients() -> None:
    replay = replayed([hit(0, path="/api/x")], settings=Settings(api_paths=("/api",)))
    assert replay.tallies[READER].requests == 1


def test_without_durations_the_load_gate_refuses_nobody() -> None:
    replay = replayed([hit(0, FEED_READER, address=f"192.0.2.{n}") for n in range(60)])
    assert (replay.tallies[READER].slept, replay.tallies[READER].refused) == (0, 0)


def test_with_durations_the_load_gate_is_replayed() -> None:
    limits = Settings(limits=Limits(load_max=1, sleeping_max=1))
    hits = [hit(0, took=3), *(hit(n, FEED_READER, address=f"192.0.2.{n}", took=0.1) for n in (1, 2))]
    reader = replayed(hits, settings=limits, has_load=True).tallies[READER]
    assert (reader.slept, reader.served, reader.refused_by) == (1, 1, {"load_defer": 1})


def test_an_assumed_duration_stands_in_where_none_is_logged() -> None:
    limits = Settings(limits=Limits(load_max=1, sleeping_max=0))
    hits = [hit(0), hit(1, FEED_READER)]
    assert replayed(hits, settings=limits, has_load=True, assume_duration=0.9).tallies[READER].refused == 0
    assert replayed(hits, settings=limits, has_load=True, assume_duration=1.1).tallies[READER].refused == 1


@pytest.mark.parametrize("has_load", [False, True])
def test_each_compared_limit_gives_what_a_replay_under_it_gives(has_load: bool) -> None:
    dice, now, hits = random.Random(4), 0.0, []
    for _ in range(600):
        now += dice.choice([0, 0.3, 1, 2])
        agent = dice.choice([CHROME, FEED_READER, GOOGLEBOT])
        hits.append(hit(now, agent, address=f"192.0.2.{dice.randrange(4)}", took=dice.random() * 3))
    limits = Limits(load_max=3, sleeping_max=2, stack_hits=3)
    replay = replayed(hits, settings=Settings(limits=limits), has_load=has_load)
    assert len(replay.compared) == (12 if has_load else 8)
    for variant, tallies in replay.compared:
        alone = replayed(hits, settings=Settings(limits=variant.limits), has_load=has_load, compares=False)
        for one in CallerClass:
            compared = tallies.get(one, replay.tallies[one])
            assert compared.refused_by == alone.tallies[one].refused_by, (variant, one)
            assert len(compared.callers_refused) == len(alone.tallies[one].callers_refused)


def test_half_and_twice_of_each_limit_in_force_are_compared() -> None:
    names = [(one.name, one.value) for one in variants(Limits(all_crawlers_seconds=None, stack_hits=1), has_load=False)]
    assert names == [
        ("stack_hits", 2),
        ("stack_seconds", 7.5),
        ("stack_seconds", 30),
        ("lone_crawler_seconds", 15),
        ("lone_crawler_seconds", 60),
    ]


# Counting in bounded memory


def test_callers_are_counted_exactly_up_to_the_bound_and_within_a_few_percent_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "COUNTED", 4096)
    dice, distinct = random.Random(1), Distinct()
    keys = [dice.getrandbits(61) for _ in range(100_000)]
    for key in keys[:4096] * 2:
        distinct.add(key)
    assert len(distinct) == 4096
    for key in keys:
        distinct.add(key)
    assert abs(len(distinct) - 100_000) < 5000
    assert len(distinct._kept) <= 4096


def test_the_worst_callers_are_kept_when_most_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "NAMED", 50)
    worst = WorstCallers()
    for n in range(5000):
        worst.note((n, "192.0.2.1", b"", 0), PERSON, "hit_stack")
        worst.note((-1, "192.0.2.9", b"", 0), PERSON, "hit_stack")
    (most,) = worst.most(1)
    assert (most.address, most.by.total()) == ("192.0.2.9", 5000)
    assert len(worst._callers) <= 100


def test_a_burst_is_honest_if_it_is_over_within_a_minute() -> None:
    bursts = Bursts(15 * SECOND, 10)
    for _ in range(25):
        bursts.note(1, 0)
    bursts.note(1, 100 * SECOND)
    assert (bursts.honest, bursts.longest) == (25, 25)
    for n in range(100):  # 30 within each 15 s, for 50 s: a person may
        bursts.note(2, n * SECOND // 2)
    bursts.finish()
    assert (bursts.honest, bursts.longest) == (30, 30)
    for n in range(400):  # 60 within each 15 s, for 100 s: a machine
        bursts.note(3, n * SECOND // 4)
    bursts.finish()
    assert (bursts.honest, bursts.longest) == (30, 60)


def test_a_burst_is_counted_to_its_end_whoever_else_comes_meanwhile() -> None:
    bursts = Bursts(15 * SECOND, 10)
    bursts.note(0, 0)
    for other in range(1, 60_000):
        bursts.note(other, SECOND)
    bursts.note(0, 2 * SECOND)
    assert bursts.longest == 2
