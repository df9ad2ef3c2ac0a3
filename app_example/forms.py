"""Forms that people send: read within limits, and only if this site's own page sent them (CSRF).

Rule: every form goes through ``Forms.accept``; a handler never sees one that another site made the browser send.
Two things are asked, and both must hold: the browser says that the request comes from this site, if it says
anything; and the form carries the token of the signed session.
"""

from __future__ import annotations

import functools
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException

from app_example.sessions import csrf_token

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Values = dict[str, str]
Handler = Callable[["Request", Values], "Response"]
FIELDS_MAX = 20
STALE = "This form had grown old, or your browser keeps no cookies for this site. Nothing is lost: send it again."


class Forms:
    """Reads forms for a site. ``public_url``: its address as the world sees it; None: the one that was asked."""

    def __init__(self, public_url: str | None) -> None:
        self.public_host = urlsplit(public_url).netloc if public_url else None

    def accept(
        self, handler: Handler, *, again: Handler | None = None, limiter: CapacityLimiter | None = None
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that calls the handler, in a thread, with the fields of a form that is the site's own.

        ``again`` draws the form once more with what was written, when its token is no longer right; without it
        the answer is 403. ``limiter`` bounds how many such handlers run at once.
        """

        @functools.wraps(handler)
        async def endpoint(request: Request) -> Response:
            if not self._comes_from_here(request):
                raise HTTPException(403, "Another site sent this form in your name, so it was not accepted.")
            form = await request.form(max_files=0, max_fields=FIELDS_MAX)
            values = {name: value for name, value in form.items() if isinstance(value, str)}
            if hmac.compare_digest(values.pop("csrf", "").encode(), csrf_token(request).encode()):
                return await to_thread.run_sync(handler, request, values, limiter=limiter)
            if again is None:
                raise HTTPException(403, STALE)
            return await to_thread.run_sync(again, request, values)

        return endpoint

    def _comes_from_here(self, request: Request) -> bool:
        """What the browser says; programs and old browsers say nothing, and the token decides alone."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = request.headers.get("origin")
        if origin is None:
            return True
        try:
            host = urlsplit(origin).netloc
        except ValueError:
            return False
        return host == (self.public_host or request.headers.get("host"))
