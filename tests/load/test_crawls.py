"""The crawlers that wait for answers, on a virtual clock."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from tests import virtual_clock
from throttle.client.host import Host
from throttle.client.pace.seeking import SeekingPace
from throttle.load.answer import Answer
from throttle.load.crawls import greedy_crawl, polite_client, polite_crawl, read_robots

ROBOTS = Answer(b"User-agent: *\nDisallow: /search\nCrawl-delay: 30\n", status=200)
OPEN = Answer(b"", status=404)
PAGE = Answer(b"a page", status=200)


def asked(make, answers, seconds=600):
    """What a crawl asks for and when, if it is answered so; the last answer again and again."""

    async def run():
        start, log, given = virtual_clock.now(), [], list(answers)
        random = Random(1)
        host = Host("site", SeekingPace(random), start, random)

        async def get(path):
            log.append((round(virtual_clock.now() - start, 2), path))
            await asyncio.sleep(0.01)
            return given.pop(0) if len(given) > 1 else given[0]

        try:
            async with asyncio.timeout(seconds):
                await make(host)(get)
        except TimeoutError:
            pass
        assert host.is_idle
        return log

    return virtual_clock.run(run())


def polite(*paths):
    return lambda host: polite_crawl(host, paths, virtual_clock.now)


def test_a_polite_crawler_reads_robots_first_and_keeps_its_crawl_delay():
    log = asked(polite("/a", "/b", "/c"), [ROBOTS, PAGE])
    assert [path for _, path in log] == ["/robots.txt", "/a", "/b", "/c"]
    assert log[2][0] - log[1][0] >= 29.9
    assert log[3][0] - log[2][0] >= 29.9


def test_several_connections_keep_the_crawl_delay_as_one():
    log = asked(lambda host: polite_crawl(host, list("abc"), virtual_clock.now, connections=3), [ROBOTS, PAGE])
    assert [later - earlier >= 29.9 for (earlier, _), (later, _) in pairwise(log[1:])] == [True, True]


def test_it_leaves_out_what_is_disallowed():
    assert [path for _, path in asked(polite("/search?q=x", "/a"), [ROBOTS, PAGE])] == ["/robots.txt", "/a"]


def test_a_refused_page_is_asked_for_again_when_the_told_wait_is_over_and_not_before():
    refused = Answer(refused_by="hit_stack", retry_after=12.0, status=503)
    log = asked(polite("/a"), [OPEN, refused, PAGE])
    assert [path for _, path in log] == ["/robots.txt", "/a", "/a"]
    assert 12 <= log[2][0] - log[1][0] < 13


def test_robots_that_cannot_be_read_forbid_everything_and_robots_that_are_not_there_nothing():
    broken = asked(polite("/a"), [Answer(failed="status 500", status=500)])
    assert {path for _, path in broken} == {"/robots.txt"}
    assert [path for _, path in asked(polite("/a"), [OPEN, PAGE])] == ["/robots.txt", "/a"]


def test_a_host_that_never_serves_is_left_alone_in_the_end():
    refused = Answer(refused_by="load_defer", retry_after=1.0, status=503)
    log = asked(polite(*(f"/{n}" for n in range(100))), [refused], seconds=3600)
    assert len(log) < 15


def test_a_client_of_the_web_api_goes_on_at_the_hosts_pace():
    log = asked(lambda host: polite_client(host, Random(2), ["/api"], virtual_clock.now), [PAGE], seconds=20)
    assert len(log) > 30
    assert {path for _, path in log} == {"/api"}


def test_a_crawl_that_is_cancelled_gives_its_place_back():
    asked(polite(*"abcdefgh"), [OPEN, PAGE], seconds=0.2)  # asserts that the host is idle


def test_a_greedy_crawl_goes_on_whatever_it_is_told():
    refused = Answer(refused_by="load_defer", retry_after=60.0, status=503)
    log = asked(lambda host: greedy_crawl(Random(1), ("/a", "/b")), [refused], seconds=10)
    assert 20 <= len(log) <= 100
    assert {path for _, path in log} == {"/a", "/b"}


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        (b"", (0, ())),
        (b"User-agent: OtherBot\nDisallow: /\nCrawl-delay: 99\n", (0, ())),
        (b"user-AGENT: OtherBot\nUser-agent: *\nDISALLOW: /a # why\n", (0, ("/a",))),
        (b"User-agent: *\nDisallow: /a\nUser-agent: OtherBot\nDisallow: /b\n", (0, ("/a",))),
        (b"User-agent: *\nDisallow:\nCrawl-delay: 2.5\n", (2.5, ())),
        (b"User-agent: *\nCrawl-delay: -1\nCrawl-delay: nan\nCrawl-delay: 1e9\n", (0, ())),
        (b"\xff\xfe\x00 nonsense\n:::\n", (0, ())),
    ],
)
def test_robots_is_read_for_everybody_and_no_nonsense_is_believed(robots, expected):
    assert read_robots(robots) == expected
