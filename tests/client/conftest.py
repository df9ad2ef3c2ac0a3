"""What concerns httpx and httpx2 alike is tested with both."""

import importlib
from typing import Any

import pytest


@pytest.fixture(params=["httpx", "httpx2"])
def httpx(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(request.param)


@pytest.fixture
def throttle_for(httpx: Any) -> Any:
    """`throttle.client.httpx` or `throttle.client.httpx2`."""
    return importlib.import_module(f"throttle.client.{httpx.__name__}")
