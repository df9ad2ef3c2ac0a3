from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import feedparser
import html5lib
import pytest
from starlette.testclient import TestClient

from tests.app_example.visitor import PASSWORD, Visitor

if TYPE_CHECKING:
    from app_example.settings import Settings


def grace_at(site: TestClient) -> Visitor:
    grace = Visitor(TestClient(site.app))
    grace.sign_up("grace", "Grace Hopper")
    return grace


def test_a_new_paper_is_on_its_page_in_the_feeds_the_api_and_the_search(ada: Visitor) -> None:
    answer = ada.post("10.9999/Zebrafish", "Zebrafish & others", tags="open access, fish", comment="Worth\nit.")
    assert answer.url.path == "/paper/2987"
    assert "Zebrafish &amp; others" in answer.text
    assert "https://doi.org/10.9999/zebrafish" in answer.text
    for feed in ("/feed.atom", "/user/ada/feed.atom", "/tag/open%20access/feed.atom"):
        read = feedparser.parse(ada.read(feed).content)
        assert not read.bozo
        assert read.entries[0].title == "Zebrafish & others"
    paper = ada.read("/api/papers?tag=fish").json()["papers"][0]
    assert paper["doi"] == "10.9999/zebrafish"
    assert paper["posted_by"] == ["ada"]
    assert ada.read("/search?q=zebrafish").text.count("/paper/2987") == 1


def test_a_paper_that_is_here_gets_another_poster_and_keeps_its_title(ada: Visitor) -> None:
    answer = ada.post("https://arxiv.org/pdf/cs/9809011v1", "Another title", tags="maps")
    assert answer.url.path == "/paper/1"
    assert "Microsoft TerraServer" in answer.text
    assert "Another title" not in answer.text
    assert ada.read("/api/papers/1").json()["posted_by"][-1] == "ada"


def test_a_paper_of_the_data_is_found_by_its_doi_and_by_its_title_alone(ada: Visitor, own_settings: Settings) -> None:
    with closing(sqlite3.connect(own_settings.database)) as connection:
        paper_id, title, doi = connection.execute(
            "SELECT id, title, doi FROM papers WHERE doi LIKE '10.%' AND doi NOT LIKE '% %' ORDER BY id LIMIT 1"
        ).fetchone()
    assert ada.post(f"doi:{doi.upper()}", "").url.path == f"/paper/{paper_id}"
    assert ada.post("", title.upper()).url.path == f"/paper/{paper_id}"


def test_tagging_a_paper_from_its_page_and_changing_ones_mind(ada: Visitor) -> None:
    assert "Post it, under your tags" in ada.read("/paper/1").text
    ada.send("/post?paper=1", "/post", tags="mappae, servers", comment="first")
    assert "Change your post" in ada.read("/paper/1").text
    assert 'value="mappae, servers"' in ada.read("/post?paper=1").text
    page = ada.send("/post?paper=1", "/post", tags="atlas", comment="second").text
    assert "second" in page
    assert "first" not in page
    assert ada.site.get("/tag/mappae").status_code == 404
    assert ada.read("/api/users/ada").json()["papers"] == 1


def test_a_change_of_ones_mind_keeps_the_time_of_the_post(ada: Visitor, own_settings: Settings) -> None:
    ada.send("/post?paper=1", "/post", tags="maps")
    with closing(sqlite3.connect(own_settings.database)) as connection:
        connection.execute("UPDATE posts SET posted = 1000000000 WHERE posted > 1600000000")
        connection.commit()
    ada.send("/post?paper=1", "/post", tags="atlas")
    assert ada.read("/api/papers/1").json()["posted"] == 1_000_000_000


@pytest.mark.parametrize("feed", ["/feed.atom", "/user/ada/feed.atom", "/tag/maps/feed.atom"])
def test_every_change_of_a_feeds_papers_is_another_version_of_the_feed(ada: Visitor, feed: str) -> None:
    grace = grace_at(ada.site)
    seen = []

    def is_new() -> bool:
        seen.append(ada.read(feed).headers["etag"])
        return seen[-1] not in seen[:-1]

    ada.send("/post?paper=1", "/post", tags="maps")
    ada.post("https://example.org/2", "Another", tags="maps")
    assert is_new()
    ada.send("/post?paper=1", "/post", tags="maps", comment="changed")
    assert is_new()
    grace.send("/post?paper=1", "/post", tags="quite another tag")
    assert is_new()
    grace.send("/post?paper=1", "/post", tags="and another")
    assert is_new()
    ada.send("/post?paper=1", "/post/remove")
    assert is_new()


def test_a_removed_post_takes_a_paper_with_it_that_nobody_else_posted(ada: Visitor) -> None:
    ada.post(tags="mine alone")
    assert ada.send("/post?paper=2987", "/post/remove").url.path == "/user/ada"
    assert ada.site.get("/paper/2987").status_code == 404
    assert ada.site.get("/tag/mine%20alone").status_code == 404
    assert "Nothing found" in ada.read("/search?q=%22a+title%22+mine").text
    site_map = ada.site.get("/sitemap.xml").text
    assert "/paper/2987" not in site_map
    assert "mine%20alone" not in site_map
    assert ada.post().url.path == "/paper/2988"  # an address is never given twice


def test_nobody_removes_anothers_post(ada: Visitor) -> None:
    ada.post()
    grace = grace_at(ada.site)
    token = grace.read("/account").text.split('name="csrf" value="')[1].split('"')[0]
    grace.site.post("/post/remove", data={"csrf": token, "paper": "2987"})
    assert ada.site.get("/paper/2987").status_code == 200


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"address": "", "title": ""}, "Give the paper"),
        ({"address": "", "title": "No paper has this title"}, "No paper of this title"),
        ({"address": "https://example.org/new", "title": ""}, "give its title, too"),
        ({"address": "javascript:alert(1)", "title": "x"}, "begins with http"),
        ({"title": "x" * 501}, "may have 500"),
        ({"authors": "x" * 2001}, "may have 2000"),
        ({"comment": "x" * 2001}, "may have 2000"),
        ({"tags": "x" * 61}, "may have 60"),
        ({"tags": ",".join(map(str, range(21)))}, "may have 20 tags"),
        ({"tags": "a/b"}, "cannot be a tag"),
    ],
)
def test_a_post_that_cannot_be_is_told_what_to_do_and_keeps_what_was_written(
    ada: Visitor, fields: dict[str, str], fault: str
) -> None:
    given = {"address": "https://example.org/", "title": "A title", "comment": "my words", **fields}
    answer = ada.post(**given)
    assert answer.status_code == 422
    assert fault in answer.text
    assert given["comment"] in answer.text
    assert ada.read("/api/users/ada").json()["papers"] == 0


def test_who_is_logged_out_while_writing_loses_nothing(ada: Visitor, own_settings: Settings) -> None:
    page = ada.read("/post").text
    token = page.split('name="csrf" value="')[1].split('"')[0]
    with closing(sqlite3.connect(own_settings.database)) as connection:
        connection.execute("DELETE FROM sessions")
        connection.commit()
    form = {"csrf": token, "address": "10.1038/x", "title": "Ünï & more", "comment": "line\nline", "tags": "a, b"}
    answer = ada.site.post("/post", data=form)
    assert answer.status_code == 403
    csrf, where = (answer.text.split(f'name="{name}" value="')[1].split('"')[0] for name in ("csrf", "next"))
    log_in = {"csrf": csrf, "next": where.replace("&amp;", "&"), "name": "ada", "password": PASSWORD}
    back = ada.site.post("/log-in", data=log_in)
    assert back.url.path == "/post"
    assert 'value="Ünï &amp; more"' in back.text
    assert "line\nline</textarea>" in back.text


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'); DROP TABLE papers; --",
        "{{ 7 * 7 }}",
        "]]><evil/>",
        "\x00\x02\x03\ufffe‮",
    ],
)
def test_nothing_that_is_posted_breaks_a_page_a_feed_or_the_database(ada: Visitor, hostile: str) -> None:
    ada.post("https://example.org/x", f"T{hostile}", authors=f"A{hostile}", comment=f"C{hostile}", tags="plain")
    for path in ("/paper/2987", "/", "/user/ada", "/tag/plain", "/search?q=plain"):
        page = ada.read(path).text
        assert "<script>" not in page
        assert "<img" not in page
        assert "T49" not in page
        html5lib.HTMLParser(strict=True).parse(page)
    for feed in ("/feed.atom", "/user/ada/feed.atom"):
        assert not feedparser.parse(ada.read(feed).content).bozo
    assert ada.read("/api/papers").json()["total"] == 2987


def test_a_posters_link_is_not_followed_in_the_sites_name(ada: Visitor) -> None:
    assert 'href="https://example.org/1" rel="nofollow ugc"' in ada.post().text


def test_a_database_that_breaks_while_the_site_runs_is_a_page_and_a_problem(
    ada: Visitor, own_settings: Settings
) -> None:
    with closing(sqlite3.connect(own_settings.database)) as connection:
        connection.execute("DROP TABLE post_tags")
    page, problem = ada.site.get("/"), ada.site.get("/api/papers")
    assert page.status_code == problem.status_code == 500
    assert "A fault of ours" in page.text
    assert problem.json()["title"].startswith("Something went wrong here")
    assert ada.site.get("/healthz").status_code == 200
