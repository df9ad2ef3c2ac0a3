"""The JSON Web API under /api: its reading part, with its description in OpenAPI at /api/openapi.json.

It is an application of its own, mounted in the site, so that its errors are JSON (RFC 9457) and not pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException

from app_example import library, related
from app_example.api_posts import posts
from app_example.fields import UnfitError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from app_example.database import Database

Thing = TypeVar("Thing")
PageNumber = Annotated[int, Query(ge=1, le=library.PAGE_MAX, description=f"{library.PAGE_SIZE} papers a page")]


class PaperOut(BaseModel):
    """A paper, as everyone who posted it describes it."""

    id: int
    url: str
    title: str
    authors: str
    abstract: str
    doi: str
    posted: int
    tags: list[str]
    posted_by: list[str]


class PapersOut(BaseModel):
    """One page of papers."""

    page: int
    last_page: int
    total: int
    papers: list[PaperOut]


class TagOut(BaseModel):
    """A tag, with the number of papers under it."""

    name: str
    papers: int


class UserOut(BaseModel):
    """A user, with the number of papers posted and the tags used most."""

    name: str
    full_name: str
    papers: int
    tags: list[TagOut]


class RelatedUserOut(BaseModel):
    """A user who shares tags with another; ``likeness`` from 0 to 1."""

    name: str
    full_name: str
    shared_tags: int
    likeness: float


def web_api(database: Database) -> FastAPI:
    """The Web API over one database."""
    api = FastAPI(
        title="Papers",
        version="1",
        description="Papers, who posted them, and under which tags. Times are seconds since 1970, UTC.",
        docs_url=None,  # Swagger's page loads its parts from elsewhere
        redoc_url=None,
        exception_handlers={
            StarletteHTTPException: _http_problem,
            RequestValidationError: _validation_problem,
            UnfitError: _unfit_problem,
            Exception: _failure,
        },
    )

    @api.get("/papers")
    def papers(
        q: Annotated[str | None, Query(max_length=library.QUERY_CHARACTERS_MAX, description="words to find")] = None,
        tag: Annotated[str | None, Query(max_length=200)] = None,
        user: Annotated[str | None, Query(max_length=200)] = None,
        page: PageNumber = 1,
    ) -> PapersOut:
        """Papers last posted first, or those found by words, by tag or by user (one of the three)."""
        if sum(value is not None for value in (q, tag, user)) > 1:
            raise HTTPException(422, "Give one of q, tag and user.")
        with database.connection() as connection:
            if q is not None:
                found = library.search(connection, q, page)
            elif tag is not None:
                found = library.by_tag(connection, _found(library.tag(connection, tag), "tag"), page)
            elif user is not None:
                found = library.by_user(connection, _found(library.user(connection, user), "user"), page)
            else:
                found = library.recent(connection, page)
        return PapersOut(
            page=page,
            last_page=found.last,
            total=found.total,
            papers=[_paper_out(entry) for entry in found.entries],
        )

    @api.get("/papers/{paper_id}")
    def paper(paper_id: Annotated[int, Path(ge=1, lt=2**63)]) -> PaperOut:
        """One paper."""
        with database.connection() as connection:
            return _paper_out(_found(library.paper(connection, paper_id), "paper"))

    @api.get("/tags")
    def tags(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[TagOut]:
        """The tags with the most papers, in order of their names."""
        with database.connection() as connection:
            return [TagOut(name=tag.name, papers=tag.papers) for tag in library.tag_cloud(connection, limit)]

    @api.get("/users/{name}")
    def user(name: str) -> UserOut:
        """One user."""
        with database.connection() as connection:
            user = _found(library.user(connection, name), "user")
            tags = [TagOut(name=tag.name, papers=tag.papers) for tag in library.tags_of_user(connection, user, 100)]
        return UserOut(name=user.name, full_name=user.full_name, papers=user.papers, tags=tags)

    @api.get("/users/{name}/related")
    def related_users(name: str) -> list[RelatedUserOut]:
        """The users most like this one, by shared tags. This costs the site up to a second of work."""
        with database.connection() as connection:
            user = _found(library.user(connection, name), "user")
            return [
                RelatedUserOut(
                    name=other.name,
                    full_name=other.full_name,
                    shared_tags=other.shared_tags,
                    likeness=round(other.likeness, 6),
                )
                for other in related.related_users(connection, user)
            ]

    @api.get("/", include_in_schema=False)
    def description() -> RedirectResponse:
        return RedirectResponse("/web-api")

    api.include_router(posts(database))
    return api


class HeadAsGet:
    """Answers HEAD with what GET would answer, without its body (RFC 9110, 9.3.2). FastAPI adds no HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self.app({**scope, "method": "GET"}, receive, send_without_body)
        else:
            await self.app(scope, receive, send)


def problem(status: int, title: str, headers: Mapping[str, str] | None = None, **members: object) -> JSONResponse:
    """An error as application/problem+json (RFC 9457)."""
    return JSONResponse(
        {"title": title, "status": status, **members}, status, headers, media_type="application/problem+json"
    )


def _found(thing: Thing | None, kind: str) -> Thing:
    if thing is None:
        raise HTTPException(404, f"There is no such {kind}.")
    return thing


def _paper_out(entry: library.Entry) -> PaperOut:
    return PaperOut(
        id=entry.id,
        url=entry.url,
        title=entry.title,
        authors=entry.authors,
        abstract=entry.abstract,
        doi=entry.doi,
        posted=entry.posted,
        tags=entry.tags,
        posted_by=[name for name, _ in entry.posters],
    )


async def _http_problem(request: Request, error: Any) -> JSONResponse:
    return problem(error.status_code, error.detail, error.headers)


async def _validation_problem(request: Request, error: Any) -> JSONResponse:
    faults = [{"where": list(fault["loc"]), "fault": fault["msg"]} for fault in error.errors()]
    return problem(422, "The request does not fit the API's description.", faults=faults)


async def _unfit_problem(request: Request, error: Any) -> JSONResponse:
    faults = [{"where": ["body", field], "fault": fault} for field, fault in error.faults.items()]
    return problem(422, str(error), faults=faults)


async def _failure(request: Request, error: Exception) -> JSONResponse:
    return problem(500, "Something went wrong here. Trying again later may help.")
