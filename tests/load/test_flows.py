from random import Random

import pytest

from throttle.load.answer import Answer
from throttle.load.flows import (
    DELAY_SECONDS,
    PATIENCE_SECONDS,
    TRIES,
    Get,
    Wait,
    greedy_crawl,
    polite_crawl,
    read_robots,
)

ROBOTS = b"User-agent: *\nDisallow: /search\nCrawl-delay: 30\n"


def steps(flow, *answers):
    """What the flow does when its requests are answered so."""
    done, given, answer = [], iter(answers), None
    try:
        while True:
            step = flow.send(answer)
            done.append(step)
            answer = next(given) if isinstance(step, Get) else None
    except StopIteration:
        return done


def test_a_polite_crawler_reads_robots_first_and_waits_its_crawl_delay_between_pages():
    assert steps(polite_crawl(["/a", "/b"]), Answer(ROBOTS), Answer(), Answer()) == [
        Get("/robots.txt"),
        Get("/a"),
        Wait(30),
        Get("/b"),
        Wait(30),
    ]


def test_a_polite_crawler_leaves_out_what_is_disallowed():
    assert Get("/search?q=x") not in steps(polite_crawl(["/search?q=x", "/a"]), Answer(ROBOTS), Answer())


def test_a_refused_page_is_asked_for_again_after_its_retry_after():
    refused = Answer(refused_by="all_crawlers", retry_after=2)
    assert steps(polite_crawl(["/a"]), Answer(), refused, Answer())[1:] == [
        Get("/a"),
        Wait(2),
        Get("/a"),
        Wait(DELAY_SECONDS),
    ]


def test_a_page_that_fails_is_given_up_after_so_many_tries_and_the_next_is_fetched():
    broken = [Answer(failed="status 500")] * TRIES
    done = steps(polite_crawl(["/a", "/b"]), Answer(), *broken, Answer())
    assert done.count(Get("/a")) == TRIES
    assert done.count(Wait(PATIENCE_SECONDS)) == TRIES
    assert Get("/b") in done


def test_without_robots_nothing_is_crawled():
    done = steps(polite_crawl(["/a"]), *[Answer(failed="status 500")] * TRIES)
    assert Get("/a") not in done


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        (b"", (DELAY_SECONDS, ())),
        (b"User-agent: OtherBot\nDisallow: /\nCrawl-delay: 99\n", (DELAY_SECONDS, ())),
        (b"user-AGENT: OtherBot\nUser-agent: *\nDISALLOW: /a # why\n", (DELAY_SECONDS, ("/a",))),
        (b"User-agent: *\nDisallow: /a\nUser-agent: OtherBot\nDisallow: /b\n", (DELAY_SECONDS, ("/a",))),
        (b"User-agent: *\nDisallow:\nCrawl-delay: 2.5\n", (2.5, ())),
        (b"User-agent: *\nCrawl-delay: 0\n", (DELAY_SECONDS, ())),
        (b"User-agent: *\nCrawl-delay: -1\nCrawl-delay: nan\nCrawl-delay: 1e9\n", (DELAY_SECONDS, ())),
        (b"\xff\xfe\x00 nonsense\n:::\n", (DELAY_SECONDS, ())),
    ],
)
def test_robots_is_read_for_everybody_and_no_nonsense_is_believed(robots, expected):
    assert read_robots(robots) == expected


def test_a_greedy_crawl_goes_on_whatever_it_is_told():
    flow = greedy_crawl(Random(1), ("/a", "/b"))
    steps = [flow.send(None)]
    for _ in range(20):
        steps.append(flow.send(Answer(refused_by="load_defer", retry_after=60) if isinstance(steps[-1], Get) else None))
    assert {step.path for step in steps if isinstance(step, Get)} == {"/a", "/b"}
    assert all(step.seconds <= 0.5 for step in steps if isinstance(step, Wait))
