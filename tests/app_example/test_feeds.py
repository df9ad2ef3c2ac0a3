from __future__ import annotations

from typing import TYPE_CHECKING

import feedparser
import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient

FEEDS = [
    "/feed.atom",
    "/tag/cs.DL/feed.atom",
    "/user/loet-leydesdorff/feed.atom",
    "/user/jakob-voß/feed.atom",
]


@pytest.mark.parametrize("path", FEEDS)
def test_a_feed_reader_reads_every_feed_without_a_fault(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.headers["content-type"] == "application/atom+xml"
    feed = feedparser.parse(answer.content)
    assert not feed.bozo
    assert feed.version == "atom10"
    assert feed.entries
    assert feed.feed.id == feed.feed.links[0].href
    for entry in feed.entries:
        assert entry.title
        assert entry.id
        assert entry.author
        assert entry.updated_parsed
        assert entry.link.startswith("http://testserver/paper/")
    assert len({entry.id for entry in feed.entries}) == len(feed.entries)


@pytest.mark.parametrize("path", FEEDS)
def test_a_reader_that_has_the_feed_is_told_so(site: TestClient, path: str) -> None:
    had = site.get(path)
    for condition in (
        {"If-None-Match": had.headers["etag"]},
        {"If-None-Match": f'"other", {had.headers["etag"]}'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": had.headers["last-modified"]},
    ):
        answer = site.get(path, headers=condition)
        assert answer.status_code == 304
        assert answer.content == b""
        assert answer.headers["etag"] == had.headers["etag"]


@pytest.mark.parametrize(
    "condition",
    [
        {"If-None-Match": '"other"'},
        {"If-None-Match": ""},
        {"If-Modified-Since": "Fri, 04 Sep 1998 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
        {"If-Modified-Since": "Fri, 04 Sep 99999999 00:00:00 GMT"},
        {"If-None-Match": '"other"', "If-Modified-Since": "Fri, 20 Nov 2026 00:00:00 GMT"},
    ],
)
def test_a_reader_that_has_another_version_gets_the_feed(site: TestClient, condition: dict[str, str]) -> None:
    assert site.get("/feed.atom", headers=condition).status_code == 200


def test_a_feed_under_another_name_of_the_host_is_another_version(site: TestClient) -> None:
    had = site.get("/feed.atom").headers["etag"]
    answer = site.get("/feed.atom", headers={"Host": "papers.example", "If-None-Match": had})
    assert answer.status_code == 200
    assert "http://papers.example/paper/" in answer.text


@pytest.mark.parametrize("host", ['"><script>', "a:99999", "[::1", "ex ample", "a\xffb"])
def test_a_hostile_host_does_not_reach_the_feed(site: TestClient, host: str) -> None:
    answer = site.get("/feed.atom", headers={"Host": host.encode("latin-1")})
    assert answer.status_code == 200
    assert "<script" not in answer.text
    assert not feedparser.parse(answer.content).bozo
