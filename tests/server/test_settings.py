"""What an operator's settings do: other limits for some paths, exempt and banned callers, own lists of agents."""

import asyncio
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, ask
from tests.server.site import site
from tests.virtual_clock import now, run
from throttle import Limits, PathLimits
from throttle.server.agents import Agent, CallerClass, Classifier
from throttle.server.settings import Settings, SettingsDict


async def statuses(app: Any, times: int, path: str = "/", **scope: Any) -> list[int | None]:
    return [(await ask(app, path, **scope)).status for _ in range(times)]


def test_every_setting_is_a_keyword_of_the_middleware_and_no_other_is() -> None:
    assert SettingsDict.__annotations__.keys() == {field.name for field in fields(Settings)}


def test_a_path_with_limits_of_its_own_counts_apart_from_the_rest() -> None:
    async def story() -> None:
        search = PathLimits("/search", Limits(stack_hits=2, stack_seconds=60), methods=("GET",))
        app = site(path_limits=[search])
        assert await statuses(app, 3, "/search") == [200, 200, 503]
        assert await statuses(app, 1, "/search/advanced") == [503]
        assert await statuses(app, 10, "/searching") == [200] * 10
        assert await statuses(app, 1, "/search", method="HEAD", agent=CHROME + " other") == [200]
        refused = await ask(app, "/search")
        assert refused.retry_after == 60
        assert '"hit_stack:/search(GET)";q=2;w=60' in refused.fields["ratelimit-policy"]
        assert b"A little slower" in refused.body

    run(story())


def test_a_path_has_its_own_agents_that_the_hit_stack_does_not_count() -> None:
    async def story() -> None:
        search = PathLimits("/search", Limits(stack_hits=1, stack_exempt_agents=("ReaderOne",)))
        app = site(limits=Limits(stack_hits=1, stack_exempt_agents=("ReaderTwo",)), path_limits=[search])
        assert await statuses(app, 2, "/search", agent="ReaderOne") == [200, 200]
        assert await statuses(app, 2, "/search", agent="ReaderTwo") == [200, 503]
        assert await statuses(app, 2, "/", agent="ReaderOne") == [200, 503]
        assert await statuses(app, 2, "/", agent="ReaderTwo") == [200, 200]

    run(story())


def test_the_first_path_that_fits_counts_and_a_mounted_application_sees_its_own_paths() -> None:
    async def story() -> None:
        limits = [PathLimits("/a/b", Limits(stack_hits=5)), PathLimits("/a", Limits(stack_hits=1))]
        app = site(path_limits=limits)
        assert await statuses(app, 3, "/a/b") == [200] * 3
        assert await statuses(app, 2, "/a") == [200, 503]
        assert await statuses(app, 2, "/mounted/a", root_path="/mounted", agent=CHROME + " x") == [200, 503]

    run(story())


def test_no_rule_concerns_an_exempt_caller() -> None:
    async def story() -> None:
        app = site(exempt_callers=["198.51.100.0/24", "2001:db8::1"], exempt_agents=["OurMonitor"])
        assert await statuses(app, 30, client="198.51.100.7") == [200] * 30
        assert await statuses(app, 30, client="2001:db8::2") == [200] * 30  # IPv6 counts by its /64
        assert await statuses(app, 30, agent="ourmonitor/1.0 bot") == [200] * 30
        assert (await statuses(app, 11))[-1] == 503

    run(story())


def test_a_banned_caller_is_answered_403_without_a_time_to_return_and_a_ban_wins() -> None:
    async def story() -> None:
        app = site(banned_callers=["203.0.113.0/24"], banned_agents=["BadBot"], exempt_callers=["203.0.113.7"])
        for answer in (await ask(app, client="203.0.113.7"), await ask(app, agent="badbot/2.0")):
            assert answer.status == 403
            assert "retry-after" not in answer.fields
            assert "refresh" not in answer.fields
            assert b"come back" not in answer.body
        json = await ask(app, agent="badbot/2.0", headers={"Accept": "application/json"})
        assert json.json["title"] == "Not served here"
        assert (await ask(app, "/robots.txt", agent="badbot/2.0")).status == 200

    run(story())


def test_own_lists_decide_before_all_others() -> None:
    async def story() -> None:
        app = site(crawlers=["Harvester"], browsers=["LibraryKiosk"], bots=["Chrome/143"])
        await statuses(app, 1, agent="Harvester/1.0")
        assert app.counts()["known crawler"]["served"] == 1
        await statuses(app, 1, agent="librarykiosk 3")
        await statuses(app, 1, agent=CHROME)
        assert app.counts()["browser"]["served"] == 1
        assert app.counts()["assumed bot"]["served"] == 1

    run(story())


def test_own_lists_come_before_another_classifier_too_and_name_their_crawlers() -> None:
    def all_people(agent: bytes) -> Agent:
        return Agent(CallerClass.BROWSER, None, "other classifier")

    async def story() -> None:
        app = site(crawlers=["Harvester", "Gleaner"], classify=all_people, limits=Limits(all_crawlers_seconds=None))
        assert await statuses(app, 2, agent="harvester/1.0") == [200, 503]
        assert await statuses(app, 1, agent="Harvester/2.0") == [503]
        assert await statuses(app, 1, agent="Gleaner") == [200]
        assert await statuses(app, 2, agent=GOOGLEBOT) == [200, 200]

    run(story())


def test_a_refreshed_table_of_names_counts_from_the_next_request(tmp_path: Path) -> None:
    table = tmp_path / "names.txt"
    table.write_text("crawler\tXqz\txqz\n")

    async def story() -> None:
        classifier = Classifier()
        app = site(classify=classifier.classify)
        assert await statuses(app, 2, agent="Xqz/1.0") == [200, 200]
        classifier.refresh(table)
        assert await statuses(app, 2, agent="Xqz/1.0") == [200, 503]

    run(story())


def test_the_counts_tell_what_became_of_the_requests() -> None:
    async def story() -> None:
        app = site()
        await statuses(app, 12)
        await statuses(app, 2, agent=GOOGLEBOT)
        assert app.counts()["browser"] == {"served": 10, "slept": 0, "hung_up": 0, "refused": {"hit_stack": 2}}
        assert app.counts()["known crawler"]["refused"] == {"lone_crawler": 1}

    run(story())


def test_a_file_that_changes_is_read_again_within_a_second_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "throttle.toml"

    def write(text: str, stamp: int) -> None:
        file.write_text(text)
        os.utime(file, (stamp, stamp))

    async def story() -> None:
        app = site(config=file, clock=now)
        assert await statuses(app, 3) == [200, 200, 503]
        write("[limits]\nstack_hits = 4\n", 2)
        await asyncio.sleep(1)
        assert await statuses(app, 3) == [200, 200, 503]  # the newest two hits stay counted
        write('[limits]\npause_exempt = ["example.org"]\n', 3)
        await asyncio.sleep(15)
        assert await statuses(app, 5) == [200] * 4 + [503]
        write("[limits]\nstack_hits = -1\n", 4)
        await asyncio.sleep(15)
        assert await statuses(app, 5) == [200] * 4 + [503]
        await asyncio.sleep(15)
        assert await statuses(app, 5) == [200] * 4 + [503]
        write("[limits]\npaused = true\n", 5)
        await asyncio.sleep(1)
        assert await statuses(app, 1, agent=FEED_READER) == [503]
        write("", 6)
        await asyncio.sleep(1)
        assert await statuses(app, 1, agent=FEED_READER) == [200]
        file.unlink()
        await asyncio.sleep(1)
        assert await statuses(app, 1, agent=FEED_READER) == [200]

    write("[limits]\nstack_hits = 2\n", 1)
    with caplog.at_level("ERROR", logger="throttle"):
        run(story())
    networks, hits = (record.message for record in caplog.records)
    assert "pause_exempt: 'example.org'" in networks
    assert "stack_hits=-1" in hits
    assert "\n" not in networks + hits


def test_another_store_is_not_taken_from_a_file_while_the_site_runs_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "throttle.toml"
    file.write_text("")

    async def story() -> None:
        app = site(config=file, clock=now)
        store = app.store
        file.write_text('store = "memory"\n')
        for _ in range(2):
            await asyncio.sleep(1)
            await ask(app)
        assert app.store is store

    with caplog.at_level("WARNING", logger="throttle"):
        run(story())
    (record,) = caplog.records
    assert "started again" in record.message


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"path_limits": ["/search"]}, "path_limits"),
        ({"path_limits": None}, "path_limits=None"),
        ({"limits": Limits(pause_exempt=["example.org"])}, "pause_exempt: 'example.org'"),
        ({"path_limits": [PathLimits("/a", Limits(pause_exempt=["b"]))]}, "pause_exempt: 'b'"),
        ({"trusted_proxies": None}, "trusted_proxies=None"),
        ({"trusted_proxies": [1]}, "trusted_proxies: 1"),
        ({"enforce": "no"}, "enforce='no'"),
        ({"exempt_agents": "Bot"}, "exempt_agents='Bot'"),
        ({"banned_agents": [""]}, "banned_agents=['']"),
        ({"banned_callers": ["example.org"]}, "example.org"),
        ({"crawlers": [3]}, "crawlers=[3]"),
        ({"status": {"hit_stak": 429}}, "no refusal is called 'hit_stak'"),
        ({"crawler_ranges": ""}, "crawler_ranges=''"),
        ({"crawler_ranges": 3}, "crawler_ranges=3"),
        ({"reverse_dns": "no"}, "reverse_dns='no'"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the text is looked at below
        Settings(**setting)
    assert said in str(caught.value)


def test_a_path_limit_for_no_method_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="a list of methods"):
        PathLimits("/search", Limits(), methods=())


def test_a_pause_of_a_path_is_an_error_for_there_is_none() -> None:
    with pytest.raises(ValueError, match="no pause of a path"):
        PathLimits("/search", Limits(paused=True))
