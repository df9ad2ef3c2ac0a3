from __future__ import annotations

import html5lib
import pytest

from app_example import refused
from throttle import Refusal

REFUSAL = Refusal(503, 7, "hit_stack", True)


def scope(method: str = "GET", path: str = "/tag/cs.DL", accept: str = "text/html,*/*;q=0.8") -> dict[str, object]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"papers.example"), (b"accept", accept.encode())],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
    }


def test_people_get_a_page_of_the_site_that_says_when_to_return() -> None:
    answer = refused.answer(scope(), REFUSAL)
    assert answer is not None
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == answer.headers["refresh"] == "7"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "7 seconds" in bytes(answer.body).decode()
    html5lib.HTMLParser(strict=True).parse(bytes(answer.body).decode())


def test_a_form_that_was_sent_is_not_sent_again_by_itself() -> None:
    answer = refused.answer(scope("POST"), REFUSAL)
    assert answer is not None
    assert "refresh" not in answer.headers


@pytest.mark.parametrize("other", [scope(accept="application/json"), scope(accept=""), scope(path="/api/papers")])
def test_machines_get_the_throttles_own_answer(other: dict[str, object]) -> None:
    assert refused.answer(other, REFUSAL) is None
