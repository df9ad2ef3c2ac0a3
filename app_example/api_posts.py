"""The part of the Web API that writes: posts, by the account that a token stands for. No cookie counts here.

Annotations are read as they stand (no «from __future__»): FastAPI could not find the local names in them later.
"""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from app_example import fields, library, posting, tokens
from app_example.accounts import Account
from app_example.database import Database

PaperNumber = Annotated[int, Path(ge=1, lt=2**63, description="the paper's number")]
TagIn = Annotated[str, Field(max_length=fields.TAG_CHARACTERS_MAX)]


class PostIn(BaseModel):
    """A paper to post. One that is new here needs a title; one that is here already keeps its own."""

    model_config = ConfigDict(extra="forbid")

    address: str = Field("", max_length=fields.ADDRESS_CHARACTERS_MAX, description="web address, DOI or arXiv number")
    title: str = Field("", max_length=fields.TITLE_CHARACTERS_MAX, description="alone, it means a paper that is here")
    authors: str = Field("", max_length=fields.AUTHORS_CHARACTERS_MAX, description="names, with commas between them")
    tags: list[TagIn] = Field([], max_length=fields.TAGS_MAX)
    comment: str = Field("", max_length=fields.COMMENT_CHARACTERS_MAX)


class PostOut(BaseModel):
    """What one user posted: the paper's number, the user's own tags and comment."""

    paper: int
    url: str
    title: str
    tags: list[str]
    comment: str
    posted: int
    posted_by: str


def posts(database: Database) -> APIRouter:
    """The addresses under /posts. A post is named by its paper's number, since a user has one of each paper."""
    router = APIRouter(prefix="/posts")
    bearer = HTTPBearer(auto_error=False, description="A token from your account page.")

    def sender(given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Account:
        with database.connection() as connection:
            found = tokens.account_of(connection, given.credentials) if given else None
        if found is None:
            raise HTTPException(
                401,
                "Send «Authorization: Bearer» with a token from your account page.",
                {"WWW-Authenticate": 'Bearer realm="papers"'},
            )
        return found

    def own(account: Account, paper_id: int) -> PostOut:
        with database.connection() as connection:
            paper, post = library.paper(connection, paper_id), posting.own_post(connection, account.id, paper_id)
        if paper is None or post is None:
            raise HTTPException(404, "You have no post of such a paper.")
        return PostOut(
            paper=paper.id,
            url=paper.url,
            title=paper.title,
            tags=post.tags,
            comment=post.comment,
            posted=post.posted,
            posted_by=account.name,
        )

    @router.post("", status_code=201, responses={200: {"model": PostOut, "description": "Your post is changed"}})
    def post(body: PostIn, account: Annotated[Account, Depends(sender)], response: Response) -> PostOut:
        """Post a paper, or change your post of it."""
        draft = posting.checked(**body.model_dump())
        with database.transaction() as connection:
            paper_id, is_new = posting.save(connection, account.id, draft, int(time.time()))
        response.status_code = 201 if is_new else 200
        response.headers["Location"] = f"/api/posts/{paper_id}"
        return own(account, paper_id)

    @router.get("/{paper_id}")
    def read(paper_id: PaperNumber, account: Annotated[Account, Depends(sender)]) -> PostOut:
        """Your post of a paper."""
        return own(account, paper_id)

    @router.delete("/{paper_id}", status_code=204)
    def remove(paper_id: PaperNumber, account: Annotated[Account, Depends(sender)]) -> None:
        """Remove your post of a paper. A paper that nobody else posted goes with it."""
        with database.transaction() as connection:
            if not posting.remove(connection, account.id, paper_id):
                raise HTTPException(404, "You have no post of such a paper.")

    return router
