"""What is read: URLs, lists, robots.txt, links, sitemaps. All of it is hostile."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.crawl.links import links
from throttle.crawl.robots import LENGTH_MAX, UNREACHABLE_FOR, Memory, is_fresh, rules
from throttle.crawl.sitemap import NoSitemapError, sitemap
from throttle.crawl.url_list import ListError, lines, printable
from throttle.crawl.web_url import _PLAIN, NotFetchableError, _web_url, web_url

# -- URLs


@pytest.mark.parametrize(
    ("written", "fetched"),
    [
        ("http://example.org", "http://example.org/"),
        (" HTTP://Example.ORG:80/A b#part ", None),
        ("https://example.org:443/x?q=1#part", "https://example.org/x?q=1"),
        ("http://user:secret@example.org/", "http://example.org/"),
        ("http://bücher.example/straße?q=ü", "http://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC"),
        ("http://example.org/%7Ea/%zz", "http://example.org/%7Ea/%zz"),
        ("http://[::1]:8000/x", "http://[::1]:8000/x"),
        ("http://example.org.:8080", "http://example.org.:8080/"),
    ],
)
def test_a_url_is_fetched_in_one_form(written: str, fetched: str | None) -> None:
    if fetched is None:
        with pytest.raises(NotFetchableError, match="space or control"):
            web_url(written)
    else:
        assert web_url(written).url == fetched


PARTS = [
    *"aZ0-._~%?/:@#[]| é",
    "http://",
    "https://",
    "www.",
    ".org",
    ":80",
    ":443",
    ":8000",
    ":59999",
    ":65536",
    "/",
    "?",
    "xn--",
    "a" * 64,
]


@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map("".join),
    st.sampled_from(["", "http://a.b", "https://a-b.example/"]),
)
def test_the_short_way_of_reading_a_url_agrees_with_the_long_one(rest: str, start: str) -> None:
    if _PLAIN.match(start + rest):
        assert web_url(start + rest) == _web_url(start + rest, None)


@pytest.mark.parametrize("url", ["http://127.0.3.4:44663/page", "https://a.example:8443/?q=1", "http://a.example/"])
def test_a_plain_url_is_read_the_short_way(url: str) -> None:
    assert _PLAIN.match(url)


def test_a_url_that_is_read_again_is_the_same() -> None:
    once = web_url("https://bücher.example/ü?q=ä ö".replace(" ", "+"))
    assert web_url(once.url) == once


def test_a_robots_txt_is_for_scheme_name_and_port() -> None:
    assert web_url("https://example.org:8443/x/y?z").origin == "https://example.org:8443"


# -- lists


def read(data: bytes) -> list[str]:
    return list(lines(io.BytesIO(data), "a list"))


def test_blank_lines_and_remarks_say_nothing() -> None:
    assert read(b"# remark\n\n  http://a/  \r\nhttp://b/") == ["http://a/", "http://b/"]


@pytest.mark.parametrize(
    "data",
    ["http://a/ü".encode("utf-8-sig"), "http://a/ü\n".encode("utf-16"), gzip.compress("http://a/ü\n".encode())],
    ids=["a mark before it", "UTF-16", "packed"],
)
def test_a_list_may_come_in_any_form(data: bytes) -> None:
    assert read(data) == ["http://a/ü"]


def test_a_line_that_is_not_utf_8_is_kept_to_be_told() -> None:
    (line,) = read(b"http://a/\xfc\n")
    assert printable(line) == "http://a/\\udcfc"


def test_a_line_without_end_is_one_line_and_takes_no_memory() -> None:
    found = read(b"x" * 10_000_000 + b"\nhttp://a/\n")
    assert [len(line) for line in found] == [65536, 9]


def test_a_packed_list_that_breaks_off_is_told() -> None:
    with pytest.raises(ListError, match="a list: Compressed file ended"):
        read(gzip.compress(b"http://a/\n" * 9999)[:-20])


def test_what_a_terminal_would_obey_is_escaped() -> None:
    assert printable("a\x1b[2Jb\r\n\u202ec\x9b") == "a\\x1b[2Jb\\r\\n\\u202ec\\x9b"


# -- robots.txt


@pytest.mark.parametrize(
    ("status", "is_allowed"),
    [(404, True), (403, True), (401, True), (302, True), (429, False), (503, False), (None, False)],
)
def test_what_follows_when_there_is_no_robots_txt(status: int | None, is_allowed: bool) -> None:
    assert rules(status, b"User-agent: *\nDisallow: /", "me").is_allowed("http://a/x") is is_allowed


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        (b"User-agent: *\nCrawl-delay: 0.5\n", 0.5),
        (b"User-agent: *\nRequest-rate: 2/5\n", 2.5),
        (b"User-agent: *\nRequest-rate: 1/10m\nCrawl-delay: 3", 600.0),
        (b"User-agent: *\nCrawl-delay: soon\n", 0.0),
        (b"User-agent: *\nCrawl-delay: -5\n", 0.0),
        (b"User-agent: other\nCrawl-delay: 9\n", 0.0),
    ],
)
def test_the_interval_that_is_asked_for(text: bytes, interval: float) -> None:
    assert rules(200, text, "throttle-crawl").interval == interval


@pytest.mark.parametrize(
    "text", [b"\x00\xff" * 1000, b"Disallow: /\n" * 9, b"User-agent: *\nCrawl-delay: " + b"9" * 400]
)
def test_a_robots_txt_of_rubbish_harms_nobody(text: bytes) -> None:
    rules(200, text, "throttle-crawl").is_allowed("http://a/x")


def test_beyond_its_length_a_robots_txt_is_not_read() -> None:
    text = b"User-agent: *\n" + b"# long\n" * (LENGTH_MAX // 7 + 1) + b"Disallow: /\n"
    assert rules(200, text, "me").is_allowed("http://a/x")


def test_a_robots_txt_is_kept_for_a_day_and_a_failure_for_minutes() -> None:
    assert is_fresh(0.0, 200, 86_399)
    assert not is_fresh(0.0, 200, 86_400)
    assert not is_fresh(0.0, 503, 601)
    assert not is_fresh(100.0, 200, 50.0)  # the clock was set back


def test_a_host_whose_robots_txt_fails_is_left_alone_for_thirty_days_and_then_goes_by_the_old_one() -> None:
    memory = Memory(0.0, 0).heard(0.0, 200, b"User-agent: *\nDisallow: /old\n")
    memory = memory.heard(1000.0, 503, b"")
    assert not memory.rules("me").is_allowed("http://a/x")
    memory = memory.heard(1000.0 + UNREACHABLE_FOR - 1, None, b"")
    assert not memory.rules("me").is_allowed("http://a/x")
    memory = memory.heard(1000.0 + UNREACHABLE_FOR, 500, b"")
    assert memory.rules("me").is_allowed("http://a/x")
    assert not memory.rules("me").is_allowed("http://a/old")
    memory = memory.heard(1000.0 + UNREACHABLE_FOR + 1, 404, b"")
    assert memory.rules("me").is_allowed("http://a/old")


# -- links


def found(page: str) -> list[str]:
    return [link.url for link in links(page, "http://a/dir/page")]


def test_links_are_absolute_and_each_comes_once() -> None:
    page = "<a href=x>1</a><A HREF='/y#z'>2</A><a href=' x '>3</a><area href=//b/z><iframe src=f>"
    assert found(page) == ["http://a/dir/x", "http://a/y", "http://b/z", "http://a/dir/f"]


def test_what_is_no_link_to_fetch_is_left_out() -> None:
    assert found("<a href=mailto:a@b><a href=javascript:x><a href=#top><a><a href=''><a href='http://['>") == []


def test_the_owners_wishes_are_obeyed() -> None:
    assert found("<a rel='x nofollow' href=a></a><a href=b>") == ["http://a/dir/b"]
    assert found("<meta name=robots content='noindex, NOFOLLOW'><a href=b>") == []
    assert found("<base href=/base/><a href=b>") == ["http://a/base/b"]


@pytest.mark.parametrize(
    "page", ["<a href=b><![bad", "<a href=b><!-- ", "<a href=b><" * 2000, "\x00<a href=b>", "<a href='b"]
)
def test_a_broken_page_gives_what_it_has(page: str) -> None:
    assert found(page) in (["http://a/dir/b"], [])


# -- sitemaps

MAP = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="urn:i">
<url><loc> http://a/1?x=1&amp;y=2 </loc><i:image><i:loc>http://a/p.png</i:loc></i:image></url><url><loc>http://a/2</loc></url></urlset>"""


@pytest.mark.parametrize(
    "data",
    [MAP, gzip.compress(MAP), b"\xef\xbb\xbf" + MAP, b"http://a/1?x=1&y=2\nhttp://a/2\n"],
    ids=["plain", "packed", "a mark", "text"],
)
def test_a_sitemap_may_be_packed_or_plain_text(data: bytes) -> None:
    assert sitemap(data) == (["http://a/1?x=1&y=2", "http://a/2"], [])


def test_an_index_names_further_sitemaps() -> None:
    assert sitemap(b"<sitemapindex><sitemap><loc>http://a/s.xml.gz</loc></sitemap></sitemapindex>") == (
        [],
        ["http://a/s.xml.gz"],
    )


def test_of_a_sitemap_that_breaks_off_the_beginning_is_used() -> None:
    assert sitemap(MAP[:-40])[0][0] == "http://a/1?x=1&y=2"
    assert sitemap(gzip.compress(MAP * 3)[:-30])[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<html><p>not found</p></html>", "no sitemap"),
        (b"hello", "neither XML nor a list"),
        (b"", "neither XML nor a list"),
        (b"\x1f\x8bnope", "packed, but broken"),
        (b"<!DOCTYPE x [<!ENTITY a 'aa'>]><urlset><url><loc>&a;</loc></url></urlset>", "declares entities"),
        (b"<a", "broken XML"),
    ],
)
def test_what_is_no_sitemap_is_told(data: bytes, message: str) -> None:
    with pytest.raises(NoSitemapError, match=message):
        sitemap(data)


def test_a_bomb_is_unpacked_to_fifty_megabytes_at_most() -> None:
    bomb = gzip.compress(b"<urlset><url><loc>http://a/</loc></url>" + b" " * 60_000_000)
    assert sitemap(bomb) == (["http://a/"], [])
