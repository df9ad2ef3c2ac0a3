"""Which requests are never throttled: by path and method only, never by extension or header.

`/search.css` must not slip through because of its name; a mounted static prefix is exempt because the router sends
everything below it to files.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from throttle.server.path import app_path

ROBOTS = "/robots.txt"  # a 5xx there means «crawl nothing» (RFC 9309, 2.3.1.4), a 4xx «crawl anything»
HEALTH_CHECKS = ("/health", "/healthz", "/livez", "/readyz")


class Exempt:
    """Says of an ASGI scope whether it is exempt. `prefixes` None: each `StaticFiles` that the application mounts.

    `app` is the application where the scope names none, as outside of Starlette.
    """

    def __init__(
        self,
        paths: Sequence[str] | None = None,
        prefixes: Sequence[str] | None = None,
        preflights: bool = True,
        app: Any = None,
    ) -> None:
        self._app = app
        self._paths = frozenset((ROBOTS, *(HEALTH_CHECKS if paths is None else paths)))
        self._prefixes = None if prefixes is None else tuple(prefix.rstrip("/") + "/" for prefix in prefixes)
        self._preflights = preflights

    def __call__(self, scope: Mapping[str, Any]) -> bool:
        path = app_path(scope) if scope.get("root_path") else scope["path"]
        if path in self._paths:
            return True
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self._prefixes = tuple(static_prefixes(scope.get("app") or self._app))
        if prefixes and path.startswith(prefixes):
            return True
        return self._preflights and scope.get("method") == "OPTIONS" and _is_preflight(scope["headers"])


def static_prefixes(app: Any, below: str = "") -> Iterator[str]:
    """The paths below which a Starlette application has mounted `StaticFiles`, within other mounts too."""
    for route in getattr(_inside(app), "routes", None) or ():
        if isinstance(route, Mount):
            if not isinstance(_inside(route.app), StaticFiles):
                yield from static_prefixes(route.app, below + route.path)
            elif route.path:  # not one that takes whatever no other route does
                yield below + route.path + "/"


def _inside(app: Any) -> Any:
    """The application within its middleware."""
    while not hasattr(app, "routes") and hasattr(app, "app"):
        app = app.app
    return app


def _is_preflight(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    names = {name for name, _ in headers}
    return b"origin" in names and b"access-control-request-method" in names
