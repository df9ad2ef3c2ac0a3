"""The site: its routes, its middleware from the inside out, and what happens when it starts and stops."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from app_example import refused, sessions
from app_example.account_pages import AccountPages
from app_example.api import HeadAsGet, web_api
from app_example.body_limit import BodyLimit
from app_example.crawling import Crawling
from app_example.database import Database, prepare
from app_example.feeds import Feeds
from app_example.forms import Forms
from app_example.pages import Pages
from app_example.posting_pages import PostingPages
from app_example.security_headers import SecurityHeaders
from app_example.settings import Settings
from app_example.templates import STATIC, render
from app_example.web_api_page import WebApiPage
from throttle import Limits, ThrottleMiddleware

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LIMITS = Limits.connotea()
PLAIN_WORDS = {  # where a handler said nothing of its own
    404: "There is no page at this address.",
    405: "This address does something else than what was asked of it.",
}


def create_app(
    settings: Settings | None = None,
    *,
    throttled: bool | None = None,
    limits: Limits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> Starlette:
    """The site as an ASGI application. ``throttled=False`` leaves the throttle out, whatever the settings say.

    ``limits`` and ``clock`` are the throttle's; robots.txt agrees with the limits.

    The database is made, if there is none, when the application starts (lifespan). Raises SettingsError.
    """
    settings = settings or Settings.from_environment()
    signing_key = settings.signing_key()
    database = Database(settings.database)
    forms = Forms(settings.public_url)
    api = web_api(database)
    crawl_delay = limits.lone_crawler_seconds or 1.0  # robots.txt says what the throttle does

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await to_thread.run_sync(prepare, settings.database)
        yield
        database.close()

    app = Starlette(
        routes=[
            *Pages(database).routes(),
            *Feeds(database, settings.public_url).routes(),
            *AccountPages(database, forms).routes(),
            *PostingPages(database, forms).routes(),
            Route("/web-api", WebApiPage(api, settings.public_url).page),
            *Crawling(database, settings.public_url, crawl_delay).routes(),
            Mount("/api", HeadAsGet(api)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={HTTPException: _error_page, Exception: _failure_page},
        lifespan=lifespan,
    )
    app.add_middleware(
        SessionMiddleware,
        secret_key=signing_key,
        session_cookie=sessions.COOKIE,
        max_age=sessions.MAX_AGE_SECONDS,
        https_only=settings.https,
    )
    app.add_middleware(BodyLimit)
    app.add_middleware(SecurityHeaders)
    if settings.throttled if throttled is None else throttled:
        _add_throttle(
            app, settings, signing_key, limits, clock
        )  # last added, outermost: a refusal costs nothing of the above
    return app


def _add_throttle(
    app: Starlette, settings: Settings, signing_key: str, limits: Limits, clock: Callable[[], float]
) -> None:
    """Mount the throttle. The only place in this site that knows of it."""
    app.add_middleware(
        ThrottleMiddleware,
        limits=limits,
        api_paths=["/api"],
        identify=sessions.session_user(signing_key),
        response=refused.answer,
        store=settings.store,
        trusted_proxies=settings.trusted_proxies,
        clock=clock,
    )


async def _error_page(request: Request, error: Any) -> Response:
    detail = PLAIN_WORDS.get(error.status_code) if error.detail == HTTPException(error.status_code).detail else None
    return render(request, "error.html", error.status_code, error.headers, detail=detail or error.detail)


async def _failure_page(request: Request, error: Exception) -> Response:
    detail = "Something went wrong here. It has been written to the log; trying again later may help."
    return render(request, "error.html", 500, detail=detail)
