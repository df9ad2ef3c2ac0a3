"""One database for all tests that only read; a copy for each test that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import argon2
import pytest
from starlette.testclient import TestClient

from app_example import passwords
from app_example.database import prepare
from app_example.settings import Settings
from app_example.site import create_app
from tests.app_example.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SECRET = "not a secret, but long enough"


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a site whose database is made."""
    settings = Settings(data=tmp_path_factory.mktemp("library"), secret=SECRET)
    prepare(settings.database)
    return settings


@pytest.fixture(scope="session")
def site(settings: Settings) -> Iterator[TestClient]:
    """The site without the throttle, to be read only."""
    with TestClient(create_app(settings, throttled=False)) as client:
        yield client


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords hashed in microseconds; test_passwords.py looks at the real thing."""
    monkeypatch.setattr(passwords, "HASHER", QUICK)


@pytest.fixture
def own_settings(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a site with a database of the test's own."""
    own = Settings(data=tmp_path, secret=SECRET)
    own.database.write_bytes(settings.database.read_bytes())
    return own


@pytest.fixture
def own_site(own_settings: Settings) -> Iterator[TestClient]:
    """The site without the throttle, with a database of the test's own."""
    with TestClient(create_app(own_settings, throttled=False), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def visitor(own_site: TestClient) -> Visitor:
    """Somebody who is not logged in, at the test's own site."""
    return Visitor(own_site)


@pytest.fixture
def ada(visitor: Visitor) -> Visitor:
    """Somebody who has just signed up as «ada»."""
    visitor.sign_up()
    return visitor
