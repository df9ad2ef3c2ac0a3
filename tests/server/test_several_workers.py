"""Several workers of a real server share limits, load and sleepers; with a memory store they are told what it does."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.asgi import CHROME, FEED_READER
from tests.uvicorn import Uvicorn, body_of, status_of, until
from throttle.server import processes


@contextmanager
def two_sites(kind: str, **environment: str) -> Iterator[tuple[Uvicorn, Uvicorn]]:
    """Two uvicorns on two ports, on one server."""
    given = {"TEST_STORE": f"{servers.shared(kind).url}?site={secrets.token_hex(8)}", **environment}
    with ExitStack() as stack:
        sites = []
        for _ in range(2):
            site = Uvicorn("tests.server.real_site:app", environment=given)
            stack.callback(site.close)
            sites.append(site)
        yield sites[0], sites[1]


@pytest.mark.parametrize("kind", servers.binaries())
def test_two_sites_on_two_ports_share_limits_load_and_sleepers(kind: str) -> None:
    with two_sites(kind, TEST_LOAD_MAX="1") as (one, other):
        assert [site.get("/", CHROME) for site in (one, other) * 5] == [200] * 10
        assert one.get("/", CHROME) == other.get("/", CHROME) == 503

        assert one.get("/", FEED_READER) == 200
        running = one.open("/wait", CHROME + " again")
        until(lambda: b'"load":1' in body(other), "the load is known")
        sleeper = other.open("/", FEED_READER)
        until(lambda: b'"sleeping":1' in body(one), "one sleeps elsewhere")
        running.close()
        assert status_of(sleeper) == 200
        sleeper.close()


def body(site: Uvicorn) -> bytes:
    with site.open("/counts", CHROME) as connection:
        return body_of(connection)


@pytest.mark.parametrize("store", ["redis", "local"])
def test_the_demo_site_with_two_workers_has_one_limit(store: str, tmp_path: Path) -> None:
    environment = {"APP_EXAMPLE_STORE": store, "APP_EXAMPLE_DATA": str(tmp_path)}
    if store == "redis":
        environment["APP_EXAMPLE_STORE"] = f"{servers.shared('valkey').url}?site={secrets.token_hex(8)}"
    else:
        environment["APP_EXAMPLE_STORE"] = f"local:{secrets.token_hex(8)}"
    site = Uvicorn("app_example:app", "--workers", "2", environment=environment)
    try:
        statuses = [site.get("/", CHROME) for _ in range(30)]
    finally:
        site.close()
    assert statuses.count(200) == 10
    assert statuses.count(503) == 20


def test_several_processes_with_a_memory_store_are_told_once_what_that_does() -> None:
    site = Uvicorn("tests.server.real_site:app", "--workers", "3", environment={"TEST_STORE": "memory"})
    time.sleep(0.3)
    said = site.close()
    assert said.count("each counts for itself") == 1
    assert "store='local'" in said


def test_one_process_is_told_nothing() -> None:
    site = Uvicorn("tests.server.real_site:app", environment={"TEST_STORE": "memory"})
    assert "counts for itself" not in site.close()
    assert not processes.is_one_of_several()
