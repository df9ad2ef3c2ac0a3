from itertools import islice

from throttle.load.crowd import FILES
from throttle.load.mix import Group, Mix
from throttle.load.run import crawls_of, report_for

PLACES = {"pages": ("/", "/a"), "feeds": ("/f",), "api": ("/api",), "dear": ("/dear",)}


def test_the_report_has_a_row_for_each_class_and_one_for_what_peoples_pages_load():
    mix = Mix("", (Group("a", "people"), Group("b", "people"), Group("c", "robots")))
    assert list(report_for(mix).tallies) == ["a", FILES, "b", "c"]


def test_each_connection_of_the_greedy_is_a_crawl_and_each_polite_crawler_one():
    mix = Mix(
        "", (Group("g", "greedy", connections=3, begins_at=6), Group("p", "polite", count=2), Group("r", "robots"))
    )
    crawls = list(islice(crawls_of(mix, PLACES, 1, lambda: 0.0), 10))
    assert [(begin, caller.kind) for begin, caller, _ in crawls] == [(6, "g")] * 3 + [(0, "p")] * 2
    assert len({caller.address for _, caller, _ in crawls}) == 5
