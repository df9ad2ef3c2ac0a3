from collections import defaultdict
from itertools import islice, pairwise

from throttle.load.crowd import FILES, Ask, Caller, callers, files_of, plan
from throttle.load.mix import Group, Mix

PLACES = {"pages": ("/", "/paper/1", "/paper/2"), "feeds": ("/a.atom",), "api": ("/api",), "dear": ("/dear",)}
PEOPLE = Group("people", "people", count=20, agents=("browsers",))
RUDE = Group("rude", "robots", rate=40, addresses=2000, agents=("crawlers", "blank"), paths=("pages", "dear"))


def asks(*groups, seconds=600, seed=1):
    return list(plan(Mix("", groups), PLACES, seconds, seed))


def test_the_same_seed_gives_the_same_plan():
    assert asks(PEOPLE, RUDE, seed=7, seconds=60) == asks(PEOPLE, RUDE, seed=7, seconds=60)
    assert asks(PEOPLE, seed=7) != asks(PEOPLE, seed=8)


def test_a_class_keeps_its_plan_whoever_else_comes():
    alone = asks(PEOPLE, seconds=60)
    assert [ask for ask in asks(PEOPLE, RUDE, seconds=60) if ask.caller.kind == "people"] == alone


def test_a_plan_is_in_order_of_time():
    assert all(one.at <= other.at for one, other in pairwise(asks(PEOPLE, RUDE, seconds=60)))


def test_no_person_asks_for_more_than_ten_pages_in_any_fifteen_seconds():
    times = defaultdict(list)
    for ask in asks(PEOPLE):
        times[ask.caller.address].append(ask.at)
    assert len(times) == 20
    for asked in times.values():
        assert all(later - earlier >= 15 for earlier, later in zip(asked, asked[10:], strict=False))


def test_people_think_as_long_as_told_on_average():
    assert 5.5 < 20 * 600 / len(asks(PEOPLE)) < 6.5


def test_a_visit_begins_at_the_front_page_with_an_empty_cache_and_the_next_after_eight_pages():
    one = [ask for ask in asks(PEOPLE) if ask.caller.address == callers(Mix("", (PEOPLE,)), PEOPLE)[0].address]
    firsts = [number for number, ask in enumerate(one) if ask.loads_files]
    assert firsts == list(range(0, len(one), 8))
    assert all(one[number].path == "/" for number in firsts)


def test_robots_keep_their_rate_at_random_instants_whatever_is_answered():
    rude = asks(RUDE, seconds=100)
    assert 3700 < len(rude) < 4300
    gaps = [other.at - one.at for one, other in pairwise(rude)]
    assert sum(gap < 0.025 * 0.1 for gap in gaps) > 0.05 * len(gaps)


def test_robots_begin_when_told_and_ask_for_the_kinds_of_paths_they_are_told():
    late = asks(Group("late", "robots", rate=9, begins_at=40, paths=("dear",)), seconds=60)
    assert min(ask.at for ask in late) >= 40
    assert {ask.path for ask in late} == {"/dear"}


def test_each_address_has_one_agent_and_is_no_other_classs():
    mix = Mix("", (PEOPLE, RUDE))
    rude, people = callers(mix, RUDE), callers(mix, PEOPLE)
    assert len({caller.address for caller in (*rude, *people)}) == 2020
    assert sum(not caller.agent for caller in rude) in range(2000 // 7 - 1, 2000 // 7 + 2)


def test_addresses_are_spread_over_as_many_networks_as_told():
    group = Group("rude", "robots", addresses=2000, networks=300)
    networks = {caller.address.rpartition(".")[0] for caller in callers(Mix("", (group,)), group)}
    assert len(networks) == 300
    assert len({one.rpartition(".")[0] for one in networks}) == 2  # 256 to the second part of the address


def test_a_browser_asks_once_for_each_file_that_its_page_loads():
    page = b"""<link rel="stylesheet" href="/static/a.css"><link href="/static/a.css" rel=x>
        <link rel="icon" href="/static/b.svg"><link href="//elsewhere.example/c.css"><a href="/static/d.css">d</a>
        <script defer src="/e.js?v=1&amp;w=2"></script><img src="/x y.png">
        <img src="/a\r\nHost: b.png"><img alt="" src="/f.png"><img src="https://elsewhere.example/g.png">"""
    ask = Ask(0, Caller("people", "127.16.0.1", "a browser"), "/")
    files = list(files_of(ask, page, 3.5))
    assert [file.path for file in files] == ["/static/a.css", "/static/b.svg", "/e.js?v=1&w=2", "/f.png"]
    assert {(file.at, file.caller.kind, file.caller.address) for file in files} == {(3.5, FILES, "127.16.0.1")}


def test_a_long_plan_is_drawn_as_it_is_needed():
    endless = plan(Mix("", (PEOPLE, RUDE)), PLACES, 1e9, 1)
    assert len(list(islice(endless, 1000))) == 1000
