"""A visitor for tests: fills in forms as a browser does, hidden fields included."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import html5lib

if TYPE_CHECKING:
    from httpx2 import Response
    from starlette.testclient import TestClient

PASSWORD = "a loom that weaves algebra"


class Visitor:
    """Somebody with a browser of one's own. Redirects are followed; every page must be valid HTML."""

    def __init__(self, site: TestClient) -> None:
        self.site = site

    def read(self, path: str) -> Response:
        return self._read(self.site.get(path))

    def send(self, page: str, action: str, **fields: str) -> Response:
        """Open a page, fill in its form with this action, and send it."""
        form = re.search(rf'<form action="{action}" method="post">(.*?)</form>', self.read(page).text, re.DOTALL)
        assert form, f"{page} has no form for {action}"
        hidden = {
            name: html.unescape(value)
            for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[1])
        }
        return self._read(self.site.post(action, data={**hidden, **fields}))

    def sign_up(self, name: str = "ada", full_name: str = "Ada Lovelace") -> Response:
        return self.send("/sign-up", "/sign-up", name=name, full_name=full_name, password=PASSWORD)

    def log_in(self, name: str = "ada", password: str = PASSWORD, page: str = "/log-in") -> Response:
        return self.send(page, "/log-in", name=name, password=password)

    def post(self, address: str = "https://example.org/1", title: str = "A title", **fields: str) -> Response:
        return self.send("/post", "/post", address=address, title=title, **fields)

    def token(self) -> str:
        page = self.send("/account", "/account/tokens", purpose="tests").text
        match = re.search(r"papers_\w+\.[\w-]+", page)
        assert match
        return match[0]

    @property
    def is_logged_in(self) -> bool:
        return "Log in" not in self.read("/").text

    @staticmethod
    def _read(answer: Response) -> Response:
        if answer.headers["content-type"].startswith("text/html"):
            html5lib.HTMLParser(strict=True).parse(answer.text)
        return answer
