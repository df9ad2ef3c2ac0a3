"""The pages that everybody reads. Handlers are plain functions, so each query runs in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app_example import library, related
from app_example.templates import render

if TYPE_CHECKING:
    from starlette.requests import Request

    from app_example.database import Database

CLOUD_TAGS = 150
SIDE_TAGS = 30


class Pages:
    """Front page, search, paper, tag, user and their lists, from one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def routes(self) -> list[Route]:
        """Where each page is."""
        handlers: dict[str, Callable[[Request], Response]] = {
            "/": self.front,
            "/search": self.search,
            "/paper/{paper_id}": self.paper,
            "/tags": self.tags,
            "/tag/{name}": self.tag,
            "/users": self.users,
            "/user/{name}": self.user,
            "/user/{name}/related": self.related,
        }
        return [Route(path, handler) for path, handler in handlers.items()]

    def front(self, request: Request) -> Response:
        """The papers posted last, and the largest tags."""
        with self.database.connection() as connection:
            page = _existing(library.recent(connection, page_number(request)))
            return render(request, "front.html", page=page, cloud=library.tag_cloud(connection, SIDE_TAGS))

    def search(self, request: Request) -> Response:
        """What the words of ?q= find."""
        query = request.query_params.get("q", "")[: library.QUERY_CHARACTERS_MAX].strip()
        with self.database.connection() as connection:
            page = _existing(library.search(connection, query, page_number(request)))
        return render(request, "search.html", page=page, query=query)

    def paper(self, request: Request) -> Response:
        """One paper: abstract, tags, who posted it, what they said."""
        with self.database.connection() as connection:
            entry = library.paper(connection, row_number(request.path_params["paper_id"]))
            if entry is None:
                raise HTTPException(404, "There is no such paper.")
            return render(request, "paper.html", paper=entry, comments=library.comments(connection, entry.id))

    def tags(self, request: Request) -> Response:
        """The tag cloud."""
        with self.database.connection() as connection:
            return render(request, "tags.html", cloud=library.tag_cloud(connection, CLOUD_TAGS))

    def tag(self, request: Request) -> Response:
        """The papers under a tag, and the tags beside it."""
        with self.database.connection() as connection:
            tag = library.tag(connection, request.path_params["name"])
            if tag is None:
                raise HTTPException(404, "No paper bears this tag.")
            page = _existing(library.by_tag(connection, tag, page_number(request)))
            beside = library.related_tags(connection, tag, SIDE_TAGS)
        return render(request, "tag.html", tag=tag, page=page, beside=beside)

    def users(self, request: Request) -> Response:
        """Everybody, most papers first."""
        number = page_number(request)
        with self.database.connection() as connection:
            users, total = library.users(connection, number)
        page = _existing(library.Page([], number, total))
        return render(request, "users.html", users=users, page=page)

    def user(self, request: Request) -> Response:
        """What a user posted, and under which tags."""
        with self.database.connection() as connection:
            user = existing_user(library.user(connection, request.path_params["name"]))
            page = _existing(library.by_user(connection, user, page_number(request)))
            tags = library.tags_of_user(connection, user, SIDE_TAGS)
        return render(request, "user.html", user=user, page=page, tags=tags)

    def related(self, request: Request) -> Response:
        """Who is like this user, by shared tags. The expensive page."""
        with self.database.connection() as connection:
            user = existing_user(library.user(connection, request.path_params["name"]))
            return render(request, "related.html", user=user, users=related.related_users(connection, user))


def existing_user(user: library.User | None) -> library.User:
    """The user, or the answer 404."""
    if user is None:
        raise HTTPException(404, "There is no user of this name.")
    return user


def page_number(request: Request) -> int:
    """The number in ?page=, from 1. Anything that is no such number is answered with 404."""
    given = request.query_params.get("page", "1")
    number = int(given) if given.isascii() and given.isdecimal() and len(given) <= 5 else 0
    if not 1 <= number <= library.PAGE_MAX:
        raise HTTPException(404, "There is no page of this number.")
    return number


def see_other(path: str) -> Response:
    """Go on there with GET, after a form was accepted."""
    return RedirectResponse(path, 303)


def _existing(page: library.Page) -> library.Page:
    if page.number > page.last:
        raise HTTPException(404, f"This list ends with page {page.last}.")
    return page


def row_number(text: str) -> int:
    """A row's number; 0, which no row has, for anything that SQLite could not hold."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
