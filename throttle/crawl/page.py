"""A page as `extract` and the links see it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """`url` is where it was found in the end; `headers` are case-insensitive; `body` as far as it was read."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_html(self) -> bool:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind in ("text/html", "application/xhtml+xml")

    @property
    def text(self) -> str:
        """By the charset that the header names, or else the page's first kilobyte, or else UTF-8."""
        named = _CHARSET.search(self.headers.get("content-type", "")) or _CHARSET.search(
            self.body[:1024].decode("latin-1")
        )
        try:
            return self.body.decode(named[1] if named else "utf-8", errors="replace")
        except (LookupError, UnicodeError):
            return self.body.decode("utf-8", errors="replace")
