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
    """Says of an ASGI scope whether it is exempt. `prefixes` None: each `StaticFiles` that the application mounts."""

    def __init__(
        self, paths: Sequence[str] | None = None, prefixes: Sequence[str] | None = None, preflights: bool = True
    ) -> None:
        self._paths = frozenset((ROBOTS, *(HEALTH_CHECKS if paths is None else paths)))
        self._prefixes = None if prefixes is None else tuple(prefix.rstrip("/") + "/" for prefix in prefixes)
        self._preflights = preflights

    def __call__(self, scope: Mapping[str, Any]) -> bool:
        path = app_path(scope) if scope.get("root_path") else scope["path"]
        if path in self._paths:
            return True
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self._prefixes = tuple(static_prefixes(scope.get("app")))
        if prefixes and path.startswith(prefixes):
            return True
        return self._preflights and scope.get("method") == "OPTIONS" and _is_preflight(scope["headers"])


def static_prefixes(app: Any) -> Iterator[str]:
    """The paths below which a Starlette application has mounted `StaticFiles`."""
    for route in getattr(app, "routes", None) or ():
        if isinstance(route, Mount) and isinstance(route.app, StaticFiles) and route.path:
            yield route.path + "/"


def _is_preflight(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    names = {name for name, _ in headers}
    return b"origin" in names and b"access-control-request-method" in names
