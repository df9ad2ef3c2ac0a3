"""Templates, and what they need besides the data: dates, marked words, sizes in a tag cloud, who asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from app_example import library, sessions

if TYPE_CHECKING:
    from starlette.requests import Request

STATIC = Path(str(resources.files(__package__))) / "static"


def render(
    request: Request,
    template: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page of the site, from a template and what it shows."""
    has_session = "session" in request.scope  # the throttle's refusals come before there is one
    html = ENVIRONMENT.get_template(template).render(
        path=request.url.path,
        status=status,
        has_session=has_session,
        logged_in=request.session.get(sessions.USER) if has_session else None,
        csrf_token=lambda: sessions.csrf_token(request),
        **context,
    )
    answer = HTMLResponse(html, status, headers)
    if has_session and request.session:  # it shows a name, or a form's token: nobody else's business
        answer.headers["Cache-Control"] = "private, no-cache"
    return answer


def text(template: str, **context: Any) -> str:
    """A template as text: a feed, a site map. What is put in is escaped as in a page."""
    return ENVIRONMENT.get_template(template).render(**context)


def day(seconds: int) -> str:
    """«4 September 1998» in UTC."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y}"


def timestamp(seconds: int) -> str:
    """A time as Atom and HTML want it (RFC 3339): 1998-09-04T00:00:00Z."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def marked(snippet: str) -> Markup:
    """A snippet with the words that were found in <mark>, everything else escaped."""
    html = str(escape(snippet)).replace(library.MARK_BEGIN, "<mark>").replace(library.MARK_END, "</mark>")
    return Markup(html)


def size(count: int, largest: int) -> int:
    """The step from 1 to 6 in which a tag cloud writes a count, by its logarithm."""
    return 1 + round(5 * math.log(max(count, 1)) / math.log(max(largest, 2)))


def page_link(path: str, number: int, query: str = "") -> str:
    """The address of a page of a list; the first page's bears no number, so it has one address only."""
    values = {**({"q": query} if query else {}), **({"page": number} if number > 1 else {})}
    return f"{path}?{urlencode(values)}" if values else path


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("app_example"),
    autoescape=True,  # of every template, whatever its name ends in
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters.update(day=day, timestamp=timestamp, marked=marked)
ENVIRONMENT.globals.update(size=size, page_link=page_link)
