"""One database for all tests that only read; a copy for each test that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from app_example.database import prepare
from app_example.settings import Settings
from app_example.site import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@pytest.fixture
def own_settings(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a site with a database of the test's own."""
    own = Settings(data=tmp_path, secret=SECRET)
    own.database.write_bytes(settings.database.read_bytes())
    return own
