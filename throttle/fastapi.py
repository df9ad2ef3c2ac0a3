"""For FastAPI: a stricter limit on one route, and what refusals look like in the OpenAPI document.

    @app.get("/export", dependencies=[Depends(route_limit(hits=3, seconds=60))])

The middleware's own rules apply besides; it must be mounted, since the counts are in its store.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope

from throttle.server.middleware import ThrottleMiddleware
from throttle.server.policy import Limits, rapid_fire_by_hit_stack
from throttle.server.refusal import Refusal, required_fields
from throttle.server.rule import Key


def route_limit(*, hits: int, seconds: float, name: str | None = None) -> Callable[[HTTPConnection], Awaitable[None]]:
    """A dependency that serves one caller at most `hits` times in `seconds`; refused requests count, too.

    Counts are kept under `name`: routes with the same name share them; by default each route has its own (one router
    included twice is the same routes). Raises ValueError for impossible numbers, RuntimeError at the first request if
    the middleware is not mounted, and HTTPException with Retry-After (503, or the middleware's `status` for
    `route_limit`) when the caller is refused: FastAPI answers with a problem document that has the `detail` alone.
    """
    Limits(stack_hits=hits, stack_seconds=seconds)  # checks the numbers

    async def limited(request: HTTPConnection) -> None:
        throttle = request.scope.get("throttle")
        if not isinstance(throttle, ThrottleMiddleware):
            raise RuntimeError("route_limit: mount ThrottleMiddleware, and do not exempt this route from it")
        named = f"route_limit:{name or _name_of_route(request.scope)}"
        rule = rapid_fire_by_hit_stack(seconds, hits, Key.CALLER, name=named)
        refusal = await throttle.ask(rule, request.scope)
        if refusal is not None:
            headers = {key.decode(): value.decode() for key, value in required_fields(refusal)}
            # FastAPI answers {"detail": ...}, which is a problem document once it is called so (RFC 9457, 3.1).
            headers["content-type"] = "application/problem+json"
            raise HTTPException(refusal.status, refusal.detail, headers)

    return limited


def _name_of_route(scope: Scope) -> str:
    """The same in every process, and of no caller's making: «GET /export shop.pages.export».

    The path alone would not do: it lacks the prefix under which a router was included.
    """
    route, endpoint = scope["route"], scope["endpoint"]
    methods = "+".join(sorted(getattr(route, "methods", None) or ["WebSocket"]))
    function = getattr(endpoint, "__qualname__", type(endpoint).__qualname__)
    return f"{methods} {route.path} {endpoint.__module__}.{function}"


def throttle_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals, for `FastAPI(responses=throttle_responses())`; by default those with status 503.

    Holds for those of the middleware, to a caller that asks for JSON, and for those of `route_limit`.
    """
    return {status: _refusal_document() for status in statuses or (503,)}


def _refusal_document() -> dict[str, Any]:
    example = Refusal(503, 7, "load_defer", is_person=False)
    return {
        "description": "Refused by the throttle: come back after the seconds that Retry-After tells.",
        "headers": {
            "Retry-After": {"description": "seconds to wait", "schema": {"type": "integer", "minimum": 1}},
            "RateLimit": {
                "description": "what is left: r requests, for t seconds, under each rule",
                "schema": {"type": "string"},
            },
            "RateLimit-Policy": {
                "description": "the rules: q requests in w seconds",
                "schema": {"type": "string"},
            },
        },
        "content": {
            "application/problem+json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "format": "uri"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                        "violated-policies": {"type": "array", "items": {"type": "string"}},
                        "retry-after": {"type": "integer"},
                    },
                    "required": ["detail"],  # all that a route's own limit tells
                },
                "example": example.problem(),
            }
        },
    }
