from collections import defaultdict
from random import Random

from throttle.load.crowd import FILES, PEOPLE, Ask, Caller, Places, feed_reader, files_of, people, rude_crawler

PLACES = Places(pages=("/paper/1", "/paper/2"), feeds=("/a.atom", "/b.atom"), expensive=("/user/x/related",))


def crowd_of_people(seed=1, **options):
    return list(people(Random(seed), PLACES, 600, **{"count": 20, "think_seconds": 6, **options}))


def test_the_same_seed_gives_the_same_plan():
    assert crowd_of_people(7) == crowd_of_people(7) != crowd_of_people(8)


def test_no_person_asks_for_more_than_ten_pages_in_any_fifteen_seconds():
    times = defaultdict(list)
    for ask in crowd_of_people():
        times[ask.caller.address].append(ask.at)
    assert len(times) == 20
    for asked in times.values():
        assert all(later - earlier >= 15 for earlier, later in zip(asked, asked[10:], strict=False))


def test_people_think_as_long_as_told_on_average():
    asks = crowd_of_people()
    assert 5.5 < 20 * 600 / len(asks) < 6.5


def test_a_visit_begins_at_the_front_page_with_an_empty_cache():
    firsts = [ask for ask in crowd_of_people() if ask.loads_files]
    assert [ask.path for ask in firsts] == ["/"] * 20


def test_a_browser_asks_once_for_each_static_file_that_its_page_links_to():
    page = b"""<link rel="stylesheet" href="/static/a.css"><link href="/static/a.css" rel=x>
        <link rel="icon" href="/static/b.svg"><link href="//elsewhere.example/static/c.css"><a href="/static/d">d</a>"""
    ask = Ask(0, Caller(PEOPLE, "127.0.1.1", "a browser"), "/")
    files = list(files_of(ask, page, 3.5))
    assert [(file.at, file.path) for file in files] == [(3.5, "/static/a.css"), (3.5, "/static/b.svg")]
    assert {(file.caller.kind, file.caller.address) for file in files} == {(FILES, "127.0.1.1")}


def test_a_feed_reader_asks_for_one_feed_after_the_other():
    assert [(ask.at, ask.path) for ask in feed_reader(PLACES, 9, every=3)] == [
        (0, "/a.atom"),
        (3, "/b.atom"),
        (6, "/a.atom"),
    ]


def test_a_rude_crawler_keeps_its_rate_whatever_is_answered():
    asks = list(rude_crawler(Random(1), PLACES, 30, rate=40, addresses=8))
    assert len(asks) == 1200
    assert asks[-1].at == 1199 / 40
    assert len({ask.caller.address for ask in asks}) == 8


def test_two_of_a_rude_crawlers_addresses_give_no_name():
    asks = list(rude_crawler(Random(1), PLACES, 5, rate=40, addresses=8))
    assert len({ask.caller.address for ask in asks if not ask.caller.agent}) == 2
