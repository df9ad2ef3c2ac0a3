"""The form to post a paper, to change one's post, and to remove it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app_example import library, posting, sessions
from app_example.account_pages import log_in_form, to_log_in
from app_example.fields import UnfitError
from app_example.forms import STALE, Forms, Values
from app_example.pages import row_number, see_other
from app_example.templates import render

if TYPE_CHECKING:
    from app_example.database import Database

FIELDS = ("address", "title", "authors", "tags", "comment")


class PostingPages:
    """Posting to one database."""

    def __init__(self, database: Database, forms: Forms) -> None:
        self.database = database
        self.forms = forms

    def routes(self) -> list[Route]:
        """Where each page is."""
        accept = self.forms.accept
        return [
            Route("/post", self.page),
            Route("/post", accept(self.post, again=self._again), methods=["POST"]),
            Route("/post/remove", accept(self.remove), methods=["POST"]),
        ]

    def page(self, request: Request) -> Response:
        """The form: empty, with what the query string gives, or with the user's post of ?paper=."""
        given = {name: request.query_params.get(name, "") for name in FIELDS}
        with self.database.connection() as connection:
            account = sessions.account(request, connection)
            if account is None:
                return to_log_in(_with_query(request))
            if "paper" not in request.query_params:
                return _form(request, given)
            paper = library.paper(connection, row_number(request.query_params["paper"]))
            if paper is None:
                raise HTTPException(404, "There is no such paper.")
            own = posting.own_post(connection, account.id, paper.id)
        values = {"address": paper.url, "title": paper.title, "authors": paper.authors}
        if own:
            values |= {"tags": ", ".join(own.tags), "comment": own.comment}
        return _form(request, given | values, paper=paper, is_posted=own is not None)

    def post(self, request: Request, values: Values) -> Response:
        """Post it, and show the paper."""
        given = {name: values.get(name, "") for name in FIELDS}
        try:
            with self.database.transaction() as connection:
                account = sessions.account(request, connection)
                if account is None:  # what was written comes back after the log-in
                    return log_in_form(request, f"/post?{urlencode(given)}", fault="Log in to post this.", status=403)
                draft = posting.checked(**given)
                paper_id, _ = posting.save(connection, account.id, draft, int(time.time()))
        except UnfitError as error:
            return _form(request, given, error.faults)
        return see_other(f"/paper/{paper_id}")

    def remove(self, request: Request, values: Values) -> Response:
        """Remove the user's post of a paper."""
        with self.database.transaction() as connection:
            account = sessions.account(request, connection)
            if account is None:
                return to_log_in("/account")
            posting.remove(connection, account.id, row_number(values.get("paper", "")))
        return see_other(f"/user/{account.name}")

    def _again(self, request: Request, values: Values) -> Response:
        return _form(request, {name: values.get(name, "") for name in FIELDS}, {"": STALE}, 403)


def _form(
    request: Request,
    values: Values,
    faults: dict[str, str] | None = None,
    status: int | None = None,
    *,
    paper: library.Entry | None = None,
    is_posted: bool = False,
) -> Response:
    status = status or (422 if faults else 200)
    return render(request, "post.html", status, values=values, faults=faults or {}, paper=paper, is_posted=is_posted)


def _with_query(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
