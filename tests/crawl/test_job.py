"""Whole crawls over real sockets, against a small site on loopback addresses."""

import asyncio
import gzip
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hishel import AsyncSqliteStorage
from hishel.httpx2 import AsyncCacheTransport

from tests.crawl.site import Asked, Writer, answer, html, serving
from throttle.client.settings import Rates, polite_hosts
from throttle.crawl import CrawlJob, CrawlOptions, HostOptions, NoContactError, Page, Problem, QueueError, Result
from throttle.crawl.queue.sqlite import SqliteQueue

FAST = Rates(start=500.0)
ME = "tests@example.org"


def crawling(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test, ended after half a minute at the latest."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 30))

    return run


def options(**given: Any) -> CrawlOptions:
    return CrawlOptions(**({"rates": FAST} | given))


async def crawl(urls: Any, *, job: Any = None, extract: Any = None, **given: Any) -> dict[str, Result]:
    """The results by URL."""
    found: dict[str, Result] = {}
    async with CrawlJob(urls, contact=ME, job=job, options=options(**given), extract=extract) as running:
        async for result in running:
            assert result.url not in found, "told twice"
            found[result.url] = result
        assert running.is_finished
    return found


@crawling
async def test_every_url_has_one_result_and_is_fetched_once() -> None:
    async with serving() as site:
        urls = [site.url(f"/{number}", host=1 + number % 5) for number in range(300)]
        results = await crawl(urls)
        assert {result.status for result in results.values()} == {200}
        assert set(results) == set(urls)
        assert sorted(site.counts()) == sorted(urls)
        assert max(site.counts().values()) == 1


@crawling
async def test_it_says_who_it_is() -> None:
    async with serving() as site:
        await crawl([site.url("/x")])
        assert {asked.fields["user-agent"].split("/")[0] for asked in site.log} == {"throttle-crawl"}
        assert all(f"(+{ME})" in asked.fields["user-agent"] for asked in site.log)


@pytest.mark.parametrize(
    "contact", [None, "", "me", "https://", "a@b", "x (y)@example.org", "ä@example.org", "a@b.c\r\nX: y"]
)
def test_without_a_contact_there_is_no_crawl(contact: str | None) -> None:
    with pytest.raises(NoContactError, match="an e-mail address or a URL"):
        CrawlJob([], contact=contact)


# -- bad input


@crawling
async def test_each_line_that_is_no_url_has_its_result_and_says_why() -> None:
    lines = [
        "mailto:me@example.org",
        "www.example.org/x",
        "http://",
        "http://a b/",
        "http://[::1",
        "x\x00\x1b[31m",
        "\udcff",
    ]
    lines += [
        "http://exa mple.org/",
        "ftp://example.org/",
        "javascript:alert(1)",
        "http://example.org:99999/",
        "x" * 9000,
    ]
    async with serving() as site:
        results = await crawl([*lines, site.url("/fine")])
        assert len(results) == len(lines) + 1
        bad = [result for result in results.values() if result.problem is Problem.MALFORMED]
        assert len(bad) == len(lines)
        assert all(result.detail for result in bad)
        assert all(result.url.isprintable() for result in bad)
        assert results["mailto:me@example.org"].detail == "only http and https can be fetched, not mailto:"
        assert results["www.example.org/x"].detail == "no scheme: write https:// before it"


@crawling
async def test_duplicates_are_fetched_once_and_counted() -> None:
    async with serving() as site:
        same = [site.url("/a"), site.url("/a#part"), site.url("/a").replace("http", "HTTP"), site.url("/a")]
        async with CrawlJob(same, contact=ME, options=options()) as job:
            results = [result async for result in job]
            assert (len(results), job.lines, job.known) == (1, 4, 3)
        assert site.paths() == ["/a"]


@crawling
async def test_a_host_that_never_answers_is_told_as_that_and_does_not_hold_up_others() -> None:
    async def silent(asked: Asked, writer: Writer) -> None:
        await asyncio.sleep(20)

    async with serving() as site:
        site.pages[f"127.0.0.2:{site.port}/never"] = silent
        urls = [site.url("/never", host=2), *(site.url(f"/{number}") for number in range(50))]
        order: list[str] = []
        async with CrawlJob(urls, contact=ME, options=options(timeout=2.0, tries_max=1)) as job:
            async for result in job:
                order.append(result.url)
                last = result
        assert order[-1] == site.url("/never", host=2)
        assert last.problem is Problem.TIMEOUT
        assert last.detail == "no answer within 2 s"


@crawling
async def test_a_body_that_never_ends_is_cut_off_by_length() -> None:
    async def endless(asked: Asked, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    async with serving() as site:
        site.pages["/endless"] = endless
        (result,) = (await crawl([site.url("/endless")], body_max=200_000)).values()
        assert (result.status, result.problem, result.is_truncated) == (200, None, True)
        assert 200_000 < result.bytes_read < 2_000_000


@crawling
async def test_a_body_that_trickles_for_ever_is_cut_off_by_time() -> None:
    async def trickle(asked: Asked, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serving() as site:
        site.pages["/trickle"] = trickle
        (result,) = (await crawl([site.url("/trickle")], timeout=1.0)).values()
        assert (result.status, result.problem) == (200, Problem.TIMEOUT)
        assert result.detail == "the body did not end within 1 s"


@crawling
async def test_a_redirect_loop_is_told_and_ends() -> None:
    async with serving() as site:
        site.pages["/1"] = answer(302, Location="/2")
        site.pages["/2"] = answer(301, Location="/1")
        site.pages["/self"] = answer(308, Location="/self")
        results = await crawl([site.url("/1"), site.url("/self")])
        assert {result.problem for result in results.values()} == {Problem.LOOP}
        assert [hop.status for hop in results[site.url("/1")].redirects] == [302, 301]
        assert len(site.paths()) == 3


@crawling
async def test_redirects_without_end_are_ended() -> None:
    async with serving() as site:
        for number in range(30):
            site.pages[f"/{number}"] = answer(302, Location=f"/{number + 1}")
        (result,) = (await crawl([site.url("/0")], redirects_max=4)).values()
        assert (result.problem, result.detail) == (Problem.REDIRECTS, "more than 4 redirects")
        assert len(site.paths()) == 5


@crawling
async def test_each_hop_obeys_the_robots_txt_of_its_own_host() -> None:
    async with serving() as site:
        site.pages["/go"] = answer(302, Location=site.url("/private", host=2))
        site.pages[f"127.0.0.2:{site.port}/robots.txt"] = answer(body=b"User-agent: *\nDisallow: /private\n")
        (result,) = (await crawl([site.url("/go")])).values()
        assert result.problem is Problem.DISALLOWED
        assert not result.is_broken
        assert site.paths() == ["/go"]


@crawling
async def test_a_redirect_that_leads_nowhere_is_told_and_is_broken() -> None:
    async with serving() as site:
        site.pages["/none"], site.pages["/empty"] = answer(302), answer(301, Location="")
        for result in (await crawl([site.url("/none"), site.url("/empty")])).values():
            assert (result.problem, result.is_broken) == (Problem.MALFORMED, True)
            assert result.detail == "redirects, and does not say where to (no Location)"


@crawling
async def test_a_redirect_to_what_cannot_be_fetched_is_told() -> None:
    async with serving() as site:
        site.pages["/go"] = answer(302, Location="itms-apps://x")
        (result,) = (await crawl([site.url("/go")])).values()
        assert (result.status, result.problem) == (302, Problem.MALFORMED)


@crawling
async def test_a_name_that_does_not_exist_is_a_connection_error() -> None:
    results = await crawl(["http://127.0.0.1:9/closed"], robots=False, tries_max=1)
    assert [result.problem for result in results.values()] == [Problem.CONNECT]
    assert all(result.detail for result in results.values())


@crawling
async def test_an_answer_that_is_no_http_is_a_line_in_the_results() -> None:
    def garbage(asked: Asked, writer: Writer) -> None:
        writer.write(b"\x00\xff\xfe rubbish\r\n\r\n")
        writer.close()

    def broken_gzip(asked: Asked, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope")

    async with serving() as site:
        site.pages |= {"/garbage": garbage, "/gzip": broken_gzip}
        results = await crawl([site.url("/garbage"), site.url("/gzip")], tries_max=1)
        assert {result.problem for result in results.values()} == {Problem.CONNECT}


@crawling
async def test_a_full_disk_ends_the_job_with_a_sentence_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "job.sqlite"
    async with serving() as site:
        urls = [site.url(f"/{number}") for number in range(300)]
        site.default = answer(kind="text/plain; " + "x" * 150)
        queue = SqliteQueue(path)
        await asyncio.to_thread(queue.add, [])
        told = []

        async def until_the_disk_is_full() -> None:
            async with CrawlJob(urls, contact=ME, job=queue, options=options()) as job:
                async for result in job:
                    if not told:
                        pages = queue._db.execute("PRAGMA page_count").fetchone()[0]
                        queue._db.execute(f"PRAGMA max_page_count={pages}")
                    told.append(result.url)

        with pytest.raises(QueueError, match="make room and run the same again"):
            await until_the_disk_is_full()
        assert 0 < len(told) < 300
        site.log.clear()
        results = await crawl(urls, job=path)
        assert set(results) == set(urls)
        assert not {url for url in told if url in site.counts()}


@crawling
async def test_a_locked_database_ends_the_job_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "job.sqlite"
    async with serving() as site:
        queue = SqliteQueue(path, busy_seconds=0.05)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(QueueError, match="another process held it"):
            await crawl([site.url("/x")], job=queue)
        blocker.close()
        assert len(await crawl([site.url("/x")], job=path)) == 1


# -- going on


@crawling
async def test_the_same_job_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "job.sqlite"
    async with serving() as site:
        urls = [site.url(f"/{number}") for number in range(200)]
        first = set()
        async with CrawlJob(urls, contact=ME, job=path, options=options()) as job:
            async for result in job:
                first.add(result.url)
                if len(first) == 50:
                    job.stop()
            assert job.stopped_by == "stop"
        assert 50 <= len(first) < 200
        site.log.clear()
        results = await crawl(urls, job=path)
        assert {url for url, result in results.items() if result.is_earlier} == first
        assert set(site.counts()) == set(urls) - first


@crawling
async def test_leaving_the_block_early_leaves_the_rest_pending(tmp_path: Path) -> None:
    path = tmp_path / "job.sqlite"
    async with serving() as site:
        urls = [site.url(f"/{number}") for number in range(100)]
        async with CrawlJob(urls, contact=ME, job=path, options=options()) as job:
            async for _ in job:
                break
        assert len(await crawl(urls, job=path)) == 100


@crawling
async def test_a_deadline_ends_the_job_gently(tmp_path: Path) -> None:
    async with serving() as site:
        urls = [site.url(f"/{number}") for number in range(100)]
        given = options(rates=Rates(start=20.0, most=20.0), deadline=0.5)
        async with CrawlJob(urls, contact=ME, job=tmp_path / "job", options=given) as job:
            results = [result async for result in job]
        assert job.stopped_by == "deadline"
        assert not job.is_finished
        assert len(results) < 40
        assert all(result.status == 200 for result in results)


# -- manners


@crawling
async def test_nothing_is_fetched_where_robots_txt_cannot_be_read() -> None:
    async with serving() as site:
        site.pages["/robots.txt"] = answer(500)
        (result,) = (await crawl([site.url("/x")], tries_max=1)).values()
        assert result.problem is Problem.ROBOTS_UNREACHABLE
        assert site.paths() == []


@crawling
async def test_robots_txt_is_asked_once_for_each_origin_and_obeyed() -> None:
    async with serving() as site:
        site.pages["/robots.txt"] = answer(
            body=b"User-agent: throttle-crawl\nDisallow: /no\n\nUser-agent: *\nDisallow: /\n"
        )
        results = await crawl([site.url(f"/{word}{number}") for word in ("yes", "no") for number in range(40)])
        assert sum(result.status == 200 for result in results.values()) == 40
        assert sum(result.problem is Problem.DISALLOWED for result in results.values()) == 40
        assert [asked.path for asked in site.log].count("/robots.txt") == 1


@crawling
async def test_a_crawl_delay_with_a_fraction_is_kept() -> None:
    times: list[float] = []

    async with serving() as site:
        site.pages["/robots.txt"] = answer(body=b"User-agent: *\nCrawl-delay: 0.1\n")
        site.on_request = lambda: times.append(time.monotonic())
        await crawl([site.url(f"/{number}") for number in range(8)])
        assert len(times) == 9
        assert times[-1] - times[1] > 0.65  # seven intervals, give or take what the loop was late


@crawling
async def test_reading_robots_txt_does_not_begin_the_crawl_delay() -> None:
    async with serving() as site:
        site.pages["/robots.txt"] = answer(body=b"User-agent: *\nCrawl-delay: 200\n")
        assert (await crawl([site.url("/")]))[site.url("/")].status == 200


@crawling
async def test_a_robots_txt_that_was_read_is_not_asked_again_by_the_next_run(tmp_path: Path) -> None:
    async with serving() as site:
        site.pages["/robots.txt"] = answer(body=b"User-agent: *\nDisallow: /no\n")
        await crawl([site.url("/a")], job=tmp_path / "job")
        site.log.clear()
        results = await crawl([site.url("/a"), site.url("/b"), site.url("/no")], job=tmp_path / "job")
        assert results[site.url("/no")].problem is Problem.DISALLOWED
        assert [asked.path for asked in site.log] == ["/b"]


@crawling
async def test_ones_own_site_may_be_crawled_without_robots_txt() -> None:
    async with serving() as site:
        site.pages["/robots.txt"] = answer(body=b"User-agent: *\nDisallow: /\n")
        own = f"127.0.0.1:{site.port}"
        results = await crawl([site.url("/a"), site.url("/a", host=2)], per_host={own: HostOptions(robots=False)})
        assert results[site.url("/a")].status == 200
        assert results[site.url("/a", host=2)].problem is Problem.DISALLOWED


@crawling
async def test_a_refused_url_is_tried_again_after_the_wait_that_was_told() -> None:
    times: list[float] = []

    def once(asked: Asked, writer: Writer) -> None:
        times.append(time.monotonic())
        page = answer(429, Retry_After="1") if len(times) == 1 else answer()
        page(asked, writer)

    async with serving() as site:
        site.pages["/once"] = once
        (result,) = (await crawl([site.url("/once")])).values()
        assert (result.status, result.tries) == (200, 2)
        assert times[1] - times[0] >= 1.0


@crawling
async def test_a_block_is_told_as_one_and_nothing_more_is_sent_there() -> None:
    async with serving() as site:
        site.default = answer(403, cf_mitigated="challenge")
        results = await crawl([site.url(f"/{number}") for number in range(60)])
        assert {result.problem for result in results.values()} <= {Problem.BLOCKED, None}
        assert sum(result.problem is Problem.BLOCKED for result in results.values()) >= 40
        assert len(site.paths()) < 20


@crawling
async def test_who_does_not_know_head_is_asked_with_get() -> None:
    def no_head(asked: Asked, writer: Writer) -> None:
        answer(405 if asked.method == "HEAD" else 200)(asked, writer)

    async with serving() as site:
        site.pages["/get"] = no_head
        results = await crawl([site.url("/get"), site.url("/head")], method="HEAD")
        assert {result.status for result in results.values()} == {200}
        asked = sorted((asked.method, asked.path) for asked in site.log if asked.path != "/robots.txt")
        assert asked == [("GET", "/get"), ("HEAD", "/get"), ("HEAD", "/head")]


@crawling
async def test_a_ceiling_over_all_hosts_is_kept() -> None:
    async with serving() as site:
        begun = time.monotonic()
        await crawl([site.url("/x", host=host) for host in range(1, 41)], robots=False, max_rate=40.0)
        assert time.monotonic() - begun > 0.85  # forty at forty a second, the first four at once


# -- pages


@crawling
async def test_links_are_followed_within_the_site_to_a_depth_and_others_looked_at_if_asked() -> None:
    async with serving() as site:
        site.pages["/"] = html("/a", "/b", "mailto:x@y.z", "#here", site.url("/other", host=2))
        site.pages["/a"] = html("/deep", "/")
        site.pages["/deep"] = html("/deeper")
        site.pages["/b"] = answer(404)
        near = await crawl([site.url()], follow=1)
        assert set(near) == {site.url(path) for path in ("/", "/a", "/b")}
        assert near[site.url("/b")].found_on == site.url()
        far = await crawl([site.url()], follow=2, external=True)
        assert set(far) == {site.url(path) for path in ("/", "/a", "/b", "/deep")} | {site.url("/other", host=2)}


@crawling
async def test_what_is_made_of_a_page_comes_with_its_result_and_stays(tmp_path: Path) -> None:
    async def first_words(page: Page) -> dict[str, str]:
        if page.url.endswith("/bad"):
            raise RuntimeError("cannot read this")
        return {"words": page.text[:5]}

    async with serving() as site:
        site.default = answer(body="grüße an alle".encode("latin-1"), kind="text/plain; charset=latin-1")
        urls = [site.url("/good"), site.url("/bad")]
        results = await crawl(urls, job=tmp_path / "job", extract=first_words)
        assert results[urls[0]].data == {"words": "grüße"}
        assert (results[urls[1]].problem, results[urls[1]].detail) == (
            Problem.EXTRACT,
            "RuntimeError: cannot read this",
        )
        assert (await crawl(urls, job=tmp_path / "job"))[urls[0]].data == {"words": "grüße"}


@crawling
async def test_what_extract_gives_and_cannot_be_written_down_is_told_of_that_page_alone() -> None:
    def strange(page: Page) -> Any:
        if page.url.endswith("/set"):
            return {1}
        if page.url.endswith("/raises"):
            raise ValueError("\ud800\x1b[2J")
        return 1

    async with serving() as site:
        urls = [site.url(path) for path in ("/set", "/raises", "/fine")]
        results = await crawl(urls, extract=strange)
        assert [results[url].problem for url in urls] == [Problem.EXTRACT, Problem.EXTRACT, None]
        assert results[urls[1]].detail == "ValueError: \\ud800\\x1b[2J"


@crawling
async def test_misuse_is_told() -> None:
    job = CrawlJob([], contact=ME)
    for use in (job.stop, aiter(job).__anext__):
        with pytest.raises(RuntimeError, match="works in its block only"):
            await (use() or asyncio.sleep(0))
    async with job:
        pass
    with pytest.raises(RuntimeError, match="entered once"):
        await job.__aenter__()
    for wrong in (None, b"http://a/", 3):
        with pytest.raises(TypeError, match="urls must be texts, and"):
            await crawl([wrong])


@crawling
async def test_a_job_that_is_cancelled_while_it_opens_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opening = asyncio.create_task(CrawlJob([], contact=ME).__aenter__())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert os.listdir(tmp_path) == []


@crawling
async def test_packed_pages_are_unpacked() -> None:
    async with serving() as site:
        site.default = answer(body=gzip.compress(b"<a href=/x>"), kind="text/html", Content_Encoding="gzip")
        assert site.url("/x") in await crawl([site.url("/")], follow=1)


@crawling
async def test_a_cache_above_asks_whether_a_page_has_changed_and_its_own_answers_cost_the_host_nothing(
    tmp_path: Path,
) -> None:
    def tagged(asked: Asked, writer: Writer) -> None:
        is_known = asked.fields.get("if-none-match") == '"1"'
        fields = {"ETag": '"1"', "Cache_Control": "max-age=0, must-revalidate"}
        answer(304, body=b"", **fields)(asked, writer) if is_known else answer(body=b"page", **fields)(asked, writer)

    async with serving() as site:
        site.pages["/tagged"] = tagged
        site.pages["/fresh"] = answer(Cache_Control="max-age=3600")
        hosts = polite_hosts(rates=FAST)
        for run in range(2):
            site.log.clear()
            job = CrawlJob(
                [site.url("/tagged"), site.url("/fresh")],
                contact=ME,
                hosts=hosts,
                options=options(robots=False),
                wrap=lambda transport: AsyncCacheTransport(
                    transport, AsyncSqliteStorage(database_path=tmp_path / "cache"), rfc=True
                ),
            )
            async with job:
                assert [result.status async for result in job] == [200, 200]
            assert sorted(site.paths()) == (["/tagged"] if run else ["/fresh", "/tagged"])
        host = hosts.host(f"127.0.0.1:{site.port}", time.monotonic())
        assert host.in_flight.count == 0
        assert host.answers == 3


@crawling
async def test_urls_may_come_from_an_asynchronous_source() -> None:
    async with serving() as site:

        async def source() -> AsyncIterator[str]:
            for number in range(5):
                await asyncio.sleep(0)
                yield site.url(f"/{number}")

        assert len(await crawl(source())) == 5


@crawling
async def test_a_job_of_nothing_is_done_at_once() -> None:
    assert await crawl([]) == {}
