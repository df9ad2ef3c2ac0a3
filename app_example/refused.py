"""The site's own page for people whom the throttle sends away; machines get the throttle's plain answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request

from app_example.security_headers import SECURITY_HEADERS
from app_example.templates import render
from throttle import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope


def answer(scope: Scope, refusal: Refusal) -> Response | None:
    """A page in the site's own dress for who asks for HTML; None leaves the answer to the throttle."""
    request = Request(scope)
    wants_html = "text/html" in request.headers.get("accept", "")
    if not (refusal.is_person and wants_html) or request.url.path.startswith("/api/"):
        return None
    seconds = refusal.retry_after
    headers = {"Retry-After": str(seconds), "Cache-Control": "no-store", **SECURITY_HEADERS}
    if request.method == "GET":
        headers["Refresh"] = str(seconds)
    return render(request, "refused.html", refusal.status, headers, seconds=seconds)
