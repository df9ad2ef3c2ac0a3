"""The whole road, through a real server and the real throttle: time passes on the test's own clock."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import feedparser
import httpx

from app_example.site import LIMITS, create_app
from tests.app_example.served import served
from tests.app_example.visitor import Visitor
from tests.asgi import CHROME, FEED_READER, GOOGLEBOT

if TYPE_CHECKING:
    from app_example.settings import Settings

ROOT = Path(__file__).parents[2]


def browser_at(address: str) -> httpx.Client:
    return httpx.Client(
        base_url=address, headers={"User-Agent": CHROME, "Accept": "text/html,*/*;q=0.8"}, follow_redirects=True
    )


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_browse_log_in_post_see_it_be_throttled_return_when_told_and_be_served(own_settings: Settings) -> None:
    clock = Clock()
    with served(create_app(own_settings, clock=clock)) as address, browser_at(address) as browser:
        ada = Visitor(browser)
        for page in ("/", "/tags", "/tag/h-index", "/paper/1", "/search?q=open+access"):
            assert ada.read(page).status_code == 200
        clock.now += LIMITS.stack_seconds
        ada.sign_up()
        ada.send("/account", "/log-out")
        clock.now += LIMITS.stack_seconds
        assert ada.log_in().status_code == 200
        assert ada.post("10.9999/new", "A new paper", tags="throttling").url.path == "/paper/2987"

        with httpx.Client(base_url=address, headers={"User-Agent": FEED_READER}) as reader:
            feed = reader.get("/user/ada/feed.atom")
            assert feedparser.parse(feed.content).entries[0].title == "A new paper"
            again = reader.get("/user/ada/feed.atom", headers={"If-None-Match": feed.headers["etag"]})
            assert again.status_code == 304
            assert reader.get("/api/papers?tag=throttling").json()["papers"][0]["posted_by"] == ["ada"]

        clock.now += LIMITS.stack_seconds
        for _ in range(LIMITS.stack_hits or 0):
            assert browser.get("/").status_code == 200
            clock.now += 0.5
        refused = browser.get("/")
        assert refused.status_code == 503
        assert "One moment, please" in refused.text
        assert browser.get("/static/papers.css").status_code == browser.get("/robots.txt").status_code == 200
        with browser_at(address) as somebody_else:  # the same address and agent, but not logged in: another caller
            assert somebody_else.get("/").status_code == 200
        clock.now += int(refused.headers["retry-after"])
        assert browser.get("/").status_code == 200


def test_a_crawler_is_told_what_robots_txt_says(own_settings: Settings) -> None:
    with (
        served(create_app(own_settings)) as address,
        httpx.Client(base_url=address, headers={"User-Agent": GOOGLEBOT}) as crawler,
    ):
        delay = re.search(r"Crawl-delay: (\d+)", crawler.get("/robots.txt").text)
        assert delay
        assert crawler.get("/paper/1").status_code == 200
        refused = crawler.get("/paper/2")
        assert refused.status_code == 503
        assert int(delay[1]) - 5 <= int(refused.headers["retry-after"]) <= int(delay[1])


def test_two_workers_share_the_database_the_sessions_and_the_posts(tmp_path: Path) -> None:
    """Each request comes on a connection of its own, so that both workers answer some."""
    environment = {**os.environ, "APP_EXAMPLE_DATA": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "uvicorn", "app_example:app", "--workers", "2", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stderr
        port = None
        ready = 0
        for line in server.stderr:
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                port = found[1]
            ready += "Application startup complete" in line
            if ready == 2:
                break
        assert port, "the server ended before it was ready"
        unkept = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", limits=unkept, headers={"User-Agent": CHROME}, follow_redirects=True
        ) as browser:
            ada = Visitor(browser)
            ada.sign_up()
            ada.post(title="Seen by both")
            token = ada.token()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", limits=unkept) as program:
            for _ in range(5):
                answer = program.get("/api/posts/2987", headers={"Authorization": f"Bearer {token}"})
                assert answer.json()["title"] == "Seen by both"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        if server.stderr:
            server.stderr.close()


def test_a_data_directory_that_cannot_be_written_ends_the_server_with_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = subprocess.run(
        [sys.executable, "-m", "uvicorn", "app_example:app", "--port", "0"],
        env={**os.environ, "APP_EXAMPLE_DATA": str(tmp_path / "file" / "data")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "Set APP_EXAMPLE_DATA to a directory that you can write to" in ended.stderr
    assert "Traceback" not in ended.stderr
