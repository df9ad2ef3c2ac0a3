from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def test_the_description_in_openapi_names_every_address(site: TestClient) -> None:
    description = site.get("/api/openapi.json").json()
    assert description["openapi"].startswith("3.")
    assert set(description["paths"]) >= {"/papers", "/papers/{paper_id}", "/tags", "/users/{name}"}


def test_a_paper_comes_with_its_tags_and_posters(site: TestClient) -> None:
    paper = site.get("/api/papers/1").json()
    assert paper["title"] == "Microsoft TerraServer"
    assert paper["tags"][:2] == ["cs.DB", "cs.DL"]
    assert paper["posted_by"][0] == "tom-barclay"


def test_a_user_comes_with_tags(site: TestClient) -> None:
    user = site.get("/api/users/loet-leydesdorff").json()
    assert user["papers"] == 179
    assert user["tags"][0] == {"name": "cs.DL", "papers": 179}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nothing", 404),
        ("/api/papers/99999", 404),
        ("/api/papers?tag=no-such-tag", 404),
        ("/api/papers?user=nobody", 404),
        ("/api/users/nobody/related", 404),
        ("/api/papers/99999999999999999999", 422),
        ("/api/papers?page=0", 422),
        ("/api/papers?page=x", 422),
        ("/api/papers?q=a&tag=b", 422),
        ("/api/tags?limit=100000", 422),
    ],
)
def test_an_error_is_problem_json_with_its_status(site: TestClient, path: str, status: int) -> None:
    answer = site.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["title"]
