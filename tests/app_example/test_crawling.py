from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.robotparser import RobotFileParser
from xml.etree import ElementTree

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def test_robots_txt_names_the_pace_and_leaves_out_what_no_crawler_needs(site: TestClient) -> None:
    rules = RobotFileParser()
    rules.parse(site.get("/robots.txt").text.splitlines())
    assert rules.crawl_delay("anybot") == 30
    assert rules.can_fetch("anybot", "/paper/1")
    assert rules.can_fetch("anybot", "/user/tom-barclay/related")
    assert not rules.can_fetch("anybot", "/search?q=x")
    assert not rules.can_fetch("anybot", "/api/papers")
    assert rules.site_maps() == ["http://testserver/sitemap.xml"]


def test_the_site_map_names_every_paper_user_and_tag_by_addresses_that_are_served(site: TestClient) -> None:
    name = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    addresses = [
        node.text or "" for node in ElementTree.fromstring(site.get("/sitemap.xml").content).iter(f"{name}loc")
    ]
    assert len(addresses) == len(set(addresses)) == 1 + 2986 + 5004 + 4949
    for address in addresses[:: len(addresses) // 40]:
        assert site.get(address).status_code == 200


def test_the_health_check_answers_and_is_not_kept(site: TestClient) -> None:
    answer = site.get("/healthz")
    assert answer.json() == {"status": "ok"}
    assert answer.headers["cache-control"] == "no-store"
