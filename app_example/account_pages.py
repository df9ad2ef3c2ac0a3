"""Signing up, logging in and out, and the account's own page."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app_example import accounts, fields, passwords, sessions, tokens
from app_example.fields import UnfitError
from app_example.forms import STALE, Forms, Values
from app_example.pages import see_other
from app_example.templates import render

if TYPE_CHECKING:
    from app_example.accounts import Account
    from app_example.database import Database

NEXT_CHARACTERS_MAX = 16_000
LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\s\x00-\x1f\x7f]*")


class AccountPages:
    """The pages of one database's accounts."""

    def __init__(self, database: Database, forms: Forms) -> None:
        self.database = database
        self.forms = forms

    def routes(self) -> list[Route]:
        """Where each page is."""
        accept, hashing = self.forms.accept, CapacityLimiter(passwords.AT_ONCE)
        return [
            Route("/sign-up", self.sign_up_page),
            Route("/sign-up", accept(self.sign_up, again=self._sign_up_again, limiter=hashing), methods=["POST"]),
            Route("/log-in", self.log_in_page),
            Route("/log-in", accept(self.log_in, again=self._log_in_again, limiter=hashing), methods=["POST"]),
            Route("/log-out", accept(self.log_out), methods=["POST"]),
            Route("/account", self.account_page),
            Route("/account/password", accept(self.change_password, limiter=hashing), methods=["POST"]),
            Route("/account/tokens", accept(self.make_token), methods=["POST"]),
            Route("/account/tokens/revoke", accept(self.revoke_token), methods=["POST"]),
            Route("/account/log-out-everywhere", accept(self.log_out_everywhere), methods=["POST"]),
        ]

    def sign_up_page(self, request: Request) -> Response:
        """The form for a new account."""
        return _sign_up_form(request, {"next": request.query_params.get("next", "")})

    def sign_up(self, request: Request, values: Values) -> Response:
        """Make the account, and log in."""
        try:
            new = accounts.checked(
                name=values.get("name", ""),
                full_name=values.get("full_name", ""),
                password=values.get("password", ""),
            )
            password_hash = passwords.hashed(new.password)
            with self.database.transaction() as connection:
                account = accounts.create(connection, new.name, new.full_name, password_hash, int(time.time()))
                sessions.begin(request, connection, account)
        except UnfitError as error:
            return _sign_up_form(request, values, error.faults)
        return see_other(local_path(values.get("next", "")))

    def _sign_up_again(self, request: Request, values: Values) -> Response:
        return _sign_up_form(request, values, {"": STALE}, 403)

    def log_in_page(self, request: Request) -> Response:
        """The form to log in."""
        return log_in_form(request, request.query_params.get("next", ""))

    def log_in(self, request: Request, values: Values) -> Response:
        """Log in, and go on to where one wanted to go."""
        name, password = fields.one_line(values.get("name", "")), values.get("password", "")
        where = values.get("next", "")
        with self.database.connection() as connection:
            account = accounts.with_password(connection, name, password[: passwords.CHARACTERS_MAX])
        if account is None:
            return log_in_form(request, where, name, "The name or the password is wrong.", 401)
        with self.database.transaction() as connection:
            sessions.begin(request, connection, account)
        return see_other(local_path(where))

    def _log_in_again(self, request: Request, values: Values) -> Response:
        return log_in_form(request, values.get("next", ""), values.get("name", ""), STALE, 403)

    def log_out(self, request: Request, values: Values) -> Response:
        """Log out in this browser."""
        with self.database.transaction() as connection:
            sessions.end(request, connection)
        return see_other("/")

    def log_out_everywhere(self, request: Request, values: Values) -> Response:
        """Log out in every browser."""
        with self.database.transaction() as connection:
            if account := sessions.account(request, connection):
                sessions.end_every(connection, account)
        request.session.clear()
        return see_other("/log-in")

    def account_page(self, request: Request) -> Response:
        """The account, and its tokens."""
        with self.database.connection() as connection:
            account = sessions.account(request, connection)
        return self._account(request, account) if account else to_log_in("/account")

    def change_password(self, request: Request, values: Values) -> Response:
        """Set another password; every other browser is logged out."""
        new = values.get("new_password", "")
        with self.database.connection() as connection:
            account = sessions.account(request, connection)
            if account is None:
                return to_log_in("/account")
            former = values.get("password", "")[: passwords.CHARACTERS_MAX]
            if accounts.with_password(connection, account.name, former) is None:
                return self._account(request, account, {"password": "This is not your password."})
        if fault := accounts.password_fault(new, account.name):
            return self._account(request, account, {"new_password": fault})
        password_hash = passwords.hashed(new)
        with self.database.transaction() as connection:
            accounts.set_password(connection, account, password_hash)
            sessions.end_every(connection, account)
            sessions.begin(request, connection, account)
        return self._account(request, account, done="The password is changed; all other browsers are logged out.")

    def make_token(self, request: Request, values: Values) -> Response:
        """Make a token for the Web API, and show it this once."""
        with self.database.transaction() as connection:
            account = sessions.account(request, connection)
            if account is None:
                return to_log_in("/account")
            try:
                token = tokens.make(connection, account, values.get("purpose", ""), int(time.time()))
            except UnfitError as error:
                token, faults = "", error.faults
            else:
                faults = {}
        return self._account(request, account, faults, token=token)

    def revoke_token(self, request: Request, values: Values) -> Response:
        """Revoke a token."""
        with self.database.transaction() as connection:
            account = sessions.account(request, connection)
            if account is None:
                return to_log_in("/account")
            tokens.revoke(connection, account, values.get("token", ""))
        return see_other("/account")

    def _account(
        self,
        request: Request,
        account: Account,
        faults: dict[str, str] | None = None,
        *,
        token: str = "",
        done: str = "",
    ) -> Response:
        with self.database.connection() as connection:
            own = tokens.of(connection, account)
        status = 422 if faults else 200
        return render(
            request, "account.html", status, account=account, tokens=own, faults=faults or {}, token=token, done=done
        )


def to_log_in(path: str) -> Response:
    """Log in first, then go on to a path of this site."""
    return see_other(f"/log-in?next={quote(path)}")


def log_in_form(request: Request, where: str, name: str = "", fault: str = "", status: int = 200) -> Response:
    """The form to log in, that leads on to a path of this site."""
    return render(request, "log_in.html", status, name=name, fault=fault, next=local_path(where, ""))


def local_path(text: str, otherwise: str = "/") -> str:
    """The text if it is a path of this site and no way out of it, as «//elsewhere» or «/\\\\elsewhere» would be."""
    return text if len(text) <= NEXT_CHARACTERS_MAX and LOCAL_PATH.fullmatch(text) else otherwise


def _sign_up_form(
    request: Request, values: Values, faults: dict[str, str] | None = None, status: int | None = None
) -> Response:
    status = status or (422 if faults else 200)
    shown = {"name": "", "full_name": "", **values, "next": local_path(values.get("next", ""), "")}
    return render(request, "sign_up.html", status, values=shown, faults=faults or {})
