"""What crawlers and monitors ask for: robots.txt, the site map, the health check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app_example.feeds import site_url
from app_example.templates import text

if TYPE_CHECKING:
    from starlette.requests import Request

    from app_example.database import Database

# RFC 9309. Crawl-delay is no part of it, but is what many crawlers read.
ROBOTS = """\
User-agent: *
Disallow: /search
Disallow: /api/
Disallow: /log-in
Disallow: /sign-up
Disallow: /post
Disallow: /account
Crawl-delay: {delay}

Sitemap: {site}/sitemap.xml
"""
SITE_MAP_ADDRESSES_MAX = 50_000  # as sitemaps.org says


class Crawling:
    """The addresses for machines. ``crawl_delay``: the seconds that the throttle asks of a known crawler."""

    def __init__(self, database: Database, public_url: str | None, crawl_delay: float) -> None:
        self.database = database
        self.public_url = public_url
        self.crawl_delay = math.ceil(crawl_delay)

    def routes(self) -> list[Route]:
        """Where each is."""
        return [
            Route("/robots.txt", self.robots),
            Route("/sitemap.xml", self.site_map),
            Route("/healthz", self.health),
        ]

    async def robots(self, request: Request) -> Response:
        """What crawlers should leave out, and how long to wait between two pages."""
        return PlainTextResponse(ROBOTS.format(delay=self.crawl_delay, site=site_url(request, self.public_url)))

    def site_map(self, request: Request) -> Response:
        """Every paper, with the day it was last posted; then the users and tags, as far as one map may go."""
        with self.database.connection() as connection:
            papers = connection.execute("SELECT id, posted FROM papers ORDER BY posted DESC, id DESC").fetchall()
            users = connection.execute("SELECT name FROM users ORDER BY id").fetchall()
            tags = connection.execute("SELECT name FROM tags ORDER BY id").fetchall()
        paths = [
            ("/", None),
            *((f"/paper/{paper_id}", posted) for paper_id, posted in papers),
            *((f"/user/{name}", None) for (name,) in users),
            *((f"/tag/{name}", None) for (name,) in tags),
        ]
        xml = text("sitemap.xml", site=site_url(request, self.public_url), paths=paths[:SITE_MAP_ADDRESSES_MAX])
        return Response(xml, media_type="application/xml")

    async def health(self, request: Request) -> Response:
        """The process answers. It asks no thread and no database, so it answers under any load."""
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})
