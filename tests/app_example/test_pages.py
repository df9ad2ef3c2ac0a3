from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import html5lib
import pytest

from app_example import library

if TYPE_CHECKING:
    from starlette.testclient import TestClient

PAGES = [
    "/",
    "/?page=150",
    "/search",
    "/search?q=open+access",
    "/search?q=zzzzzz",
    "/paper/1",
    "/tags",
    "/tag/cs.DL",
    "/tag/h-index?page=2",
    "/users",
    "/user/loet-leydesdorff",
    "/user/jakob-voß",
    "/user/tom-barclay/related",
]

HOSTILE_QUERIES = [
    '"',
    '""',
    "'",
    "'; DROP TABLE papers; --",
    "*",
    "a*",
    "NEAR(a b)",
    "title:x",
    "a AND OR NOT",
    "(((((",
    "^a",
    "{title} : x",
    "-",
    "_",
    "\x00",
    "\x02x\x03",
    "<script>alert(1)</script>",
    "\ud7ff\uffff",
    "a " * 5000,
    "☃ ünïcödé",
]


def strictly_parsed(html: str) -> None:
    html5lib.HTMLParser(strict=True).parse(html)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_served_as_valid_html(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 200
    strictly_parsed(answer.text)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/paper/0",
        "/paper/99999999999999999999999",
        "/paper/-1",
        "/paper/٣",
        "/tag/no-such-tag",
        "/user/nobody",
        "/user/nobody/related",
        "/user/nobody/feed.atom",
        "/?page=0",
        "/?page=151",
        "/?page=99999999999999999999",
        "/?page=x",
        "/?page=",
        "/search?q=open&page=9999",
        "/static/../settings.py",
        "/static/nothing",
        "/%00",
    ],
)
def test_what_is_not_there_is_answered_404_with_a_page_of_the_site(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    strictly_parsed(answer.text)


@pytest.mark.parametrize("query", HOSTILE_QUERIES)
def test_no_search_breaks_the_site_or_the_page(site: TestClient, query: str) -> None:
    for path in ("/search", "/api/papers"):
        answer = site.get(path, params={"q": query})
        assert answer.status_code == (422 if path.startswith("/api") and len(query) > 200 else 200)
    page = site.get("/search", params={"q": query})
    assert "<script" not in page.text
    if "\x00" not in query and "\uffff" not in query and "\x02" not in query:
        strictly_parsed(page.text)


def test_a_search_finds_papers_that_hold_every_word(site: TestClient) -> None:
    one, both = (
        site.get("/api/papers", params={"q": words}).json()["total"] for words in ("altmetrics", "altmetrics twitter")
    )
    assert 0 < both < one


def test_a_phrase_in_quotation_marks_is_found_as_it_stands(site: TestClient) -> None:
    words, phrase = (site.get("/api/papers", params={"q": q}).json()["total"] for q in ("web data", '"web data"'))
    assert 0 < phrase < words


def test_words_that_were_found_are_marked(site: TestClient) -> None:
    assert "<mark>" in site.get("/search?q=altmetrics").text


def test_a_tag_and_a_user_are_found_whatever_the_case(site: TestClient) -> None:
    assert site.get("/tag/CS.dl").status_code == 200
    assert site.get("/user/Loet-Leydesdorff").status_code == 200


def test_pages_of_a_list_lead_to_every_entry_once(site: TestClient) -> None:
    first = site.get("/api/papers?tag=h-index").json()
    ids = [
        paper["id"]
        for number in range(1, first["last_page"] + 1)
        for paper in site.get(f"/api/papers?tag=h-index&page={number}").json()["papers"]
    ]
    assert len(ids) == len(set(ids)) == first["total"] > library.PAGE_SIZE


def test_related_users_share_tags_and_the_likest_come_first(site: TestClient) -> None:
    related = site.get("/api/users/ludo-waltman/related").json()
    assert related[0]["name"] == "nees-jan-van-eck"
    assert all(1 >= one["likeness"] >= other["likeness"] >= 0 for one, other in pairwise(related))
    assert all(other["shared_tags"] > 0 for other in related)


def test_head_is_answered_like_get_without_a_body(site: TestClient) -> None:
    answer = site.head("/tag/cs.DL")
    assert answer.status_code == 200
    assert answer.content == b""


def test_pages_load_nothing_from_elsewhere_and_run_no_scripts(site: TestClient) -> None:
    for path in ("/", "/nothing", "/static/papers.css", "/api/tags"):
        policy = site.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script" not in policy


def test_who_is_not_logged_in_gets_no_cookie(site: TestClient) -> None:
    assert "set-cookie" not in site.get("/").headers
