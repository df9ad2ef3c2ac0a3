"""Where in the application a request goes: by whole segments of its path, never by parts of a name."""

from collections.abc import Iterable, Mapping
from typing import Any


def app_path(scope: Mapping[str, Any]) -> str:
    """The path below the point where the application is mounted (ASGI's `root_path`)."""
    path: str = scope["path"]
    root_path = scope.get("root_path")
    if root_path and path.startswith(root_path + "/"):
        return path[len(root_path) :]
    return path


class Paths:
    """A set of paths, asked whether a path is one of them or lies below one: `/api` holds `/api/x`, not `/apis`."""

    __slots__ = ("_below", "_paths")

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(path.rstrip("/") for path in paths)
        self._below = tuple(path + "/" for path in self._paths)

    def __bool__(self) -> bool:
        return bool(self._paths)

    def __contains__(self, path: str) -> bool:
        return path.startswith(self._below) or path in self._paths
