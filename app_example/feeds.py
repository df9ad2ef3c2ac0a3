"""Atom feeds (RFC 4287) of everything, a tag and a user, for readers that ask again and again.

A reader that has the current feed is told so (304) after one cheap query, before anything is rendered.
"""

from __future__ import annotations

import sqlite3
import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from app_example import library
from app_example.conditional import Version
from app_example.pages import existing_user
from app_example.templates import text

if TYPE_CHECKING:
    from starlette.requests import Request

    from app_example.database import Database

MAX_AGE_SECONDS = 300

# Whatever changes in a feed changes one of these: the posts of its papers, by whomever. A post that is changed
# gets a new number, and no number is given twice; so with the same count and the same highest number, nothing
# came, went or changed.
STATE = "SELECT count(*), coalesce(max(posts.id), 0), coalesce(max(changed), 0) FROM posts"
TAG_STATE = f"""
    {STATE} WHERE paper_id IN (SELECT paper_id FROM posts JOIN post_tags ON post_id = posts.id WHERE tag_id = ?)
"""
USER_STATE = f"{STATE} WHERE paper_id IN (SELECT paper_id FROM posts WHERE user_id = ?)"


class Feeds:
    """The feeds of one database. ``public_url`` goes into their links; None: the address that was asked."""

    def __init__(self, database: Database, public_url: str | None) -> None:
        self.database = database
        self.public_url = public_url

    def routes(self) -> list[Route]:
        """Where each feed is: beside the page it follows."""
        return [
            Route("/feed.atom", self.recent),
            Route("/tag/{name}/feed.atom", self.tag),
            Route("/user/{name}/feed.atom", self.user),
        ]

    def recent(self, request: Request) -> Response:
        """The papers posted last."""
        with self.database.connection() as connection:
            version = self._version(request, connection.execute(STATE))
            if version.is_known_to(request):
                return version.not_modified()
            entries = library.recent(connection, 1).entries
        return self._feed(request, version, "Papers: posted last", "/", entries)

    def tag(self, request: Request) -> Response:
        """The papers posted last under a tag."""
        with self.database.connection() as connection:
            tag = library.tag(connection, request.path_params["name"])
            if tag is None:
                raise HTTPException(404, "No paper bears this tag.")
            version = self._version(request, connection.execute(TAG_STATE, (tag.id,)))
            if version.is_known_to(request):
                return version.not_modified()
            entries = library.by_tag(connection, tag, 1).entries
        return self._feed(request, version, f"Papers: {tag.name}", f"/tag/{quote(tag.name)}", entries)

    def user(self, request: Request) -> Response:
        """The papers that a user posted last."""
        with self.database.connection() as connection:
            user = existing_user(library.user(connection, request.path_params["name"]))
            version = self._version(request, connection.execute(USER_STATE, (user.id,)))
            if version.is_known_to(request):
                return version.not_modified()
            entries = library.by_user(connection, user, 1).entries
        return self._feed(request, version, f"Papers: {user.full_name}", f"/user/{quote(user.name)}", entries)

    def _version(self, request: Request, state: sqlite3.Cursor) -> Version:
        count, last, changed = state.fetchone()
        # The links in a feed are absolute: asked under another name of the host, it is another version.
        site = uuid.uuid5(uuid.NAMESPACE_URL, site_url(request, self.public_url)).hex[:8]
        return Version(f"{count}-{last}-{changed}-{site}", changed, MAX_AGE_SECONDS)

    def _feed(
        self, request: Request, version: Version, title: str, path: str, entries: list[library.Entry]
    ) -> Response:
        xml = text(
            "feed.xml",
            title=title,
            site=site_url(request, self.public_url),
            path=path,
            feed_path=f"{path.rstrip('/')}/feed.atom",
            changed=version.changed,
            entries=entries,
            entry_id=lambda entry: uuid.uuid5(uuid.NAMESPACE_URL, entry.url).urn,
        )
        return Response(xml, headers=version.headers, media_type="application/atom+xml")


def site_url(request: Request, public_url: str | None) -> str:
    """The site's address without a slash at the end: the one that was set, or the one that was asked."""
    return public_url or str(request.base_url).rstrip("/")
