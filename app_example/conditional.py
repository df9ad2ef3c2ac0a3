"""Answers to a reader who may have the current version already (RFC 9110, 13)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Version:
    """Which version this is: the text of a weak entity tag, and when it changed, in seconds since 1970."""

    tag: str
    changed: int
    max_age: int

    @property
    def headers(self) -> dict[str, str]:
        """The fields that every answer about this version bears, 200 and 304 alike."""
        return {
            "ETag": f'W/"{self.tag}"',
            "Last-Modified": formatdate(self.changed, usegmt=True),
            "Cache-Control": f"max-age={self.max_age}",
        }

    def is_known_to(self, request: Request) -> bool:
        """Whether the reader says that it has this version. If-None-Match goes before If-Modified-Since."""
        if (known := request.headers.get("if-none-match")) is not None:
            return known.strip() == "*" or f'"{self.tag}"' in ENTITY_TAG.findall(known)
        try:
            since = parsedate_to_datetime(request.headers.get("if-modified-since", ""))
            return since.timestamp() >= self.changed
        except (ValueError, TypeError, OverflowError):  # absent, or no date
            return False

    def not_modified(self) -> Response:
        """304."""
        return Response(status_code=304, headers=self.headers)
