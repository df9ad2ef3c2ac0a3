import asyncio

import pytest

from throttle.load.answer import Answer
from throttle.load.places import Links, SiteError, find_places

PAGES = {
    "/": b'<a href="/one">1</a> <a href="/two?q=a&amp;b=c#there">2</a> <a href="//elsewhere.example/x">x</a>',
    "/sitemap.xml": b"<urlset><url><loc>http://site.example/mapped</loc></url></urlset>",
    "/users": b"""<a href='/user/a/related'>a</a><a href="/user/a">a</a>""",
}


def found(site, pages=PAGES):
    async def fetch(path):
        return Answer(pages[path], status=200) if path in pages else Answer(status=404)

    return asyncio.run(find_places(site, fetch))


def test_a_site_that_no_mix_describes_is_known_by_its_map_and_its_front_page():
    assert found(None)["pages"] == ("/mapped", "/one", "/two?q=a&b=c", "/")


def test_without_map_and_links_there_is_the_front_page():
    assert found(None, {})["pages"] == ("/",)


def test_what_a_mix_does_not_name_is_its_pages():
    places = found({"pages": ("/x",)})
    assert places == {"pages": ("/x",), "feeds": ("/x",), "api": ("/x",), "dear": ("/x",)}


def test_links_are_taken_where_they_are_like_the_pattern():
    assert found({"pages": ("/",), "dear": (Links("/users", "/user/*/related"),)})["dear"] == ("/user/a/related",)


@pytest.mark.parametrize("links", [Links("/nowhere"), Links("/users", "/none/*")])
def test_a_page_that_a_mix_names_must_be_there_and_have_such_links(links):
    with pytest.raises(SiteError, match=r"/nowhere|/none"):
        found({"dear": (links,)})


def test_no_site_is_told_as_such():
    async def fetch(path):
        return Answer(failed="no connection: refused")

    with pytest.raises(SiteError, match="no connection"):
        asyncio.run(find_places(None, fetch))
