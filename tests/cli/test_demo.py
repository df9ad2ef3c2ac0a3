"""The whole demo, short: a real site, real sockets, a real crowd."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from throttle.cli import CommandError, demo
from throttle.cli.crowd_run import expect_alive
from throttle.cli.demo_site import running_site

COMMAND = [sys.executable, "-m", "throttle", "demo"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX")


def run_demo(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False, env=os.environ | environment
    )


@pytest.fixture(scope="session")
def papers(tmp_path_factory):
    """A data directory whose database is made."""
    from app_example.database import prepare

    directory = tmp_path_factory.mktemp("papers")
    prepare(directory / "library.sqlite3")
    return directory


def check(classes):
    people, files, rude = classes["people"], classes["their files"], classes["rude crawler"]
    assert people["offered"] >= 5
    for ours in (people, files):
        assert (ours["refused"], ours["failed"], ours["slept"]) == ({}, {}, 0)
        assert ours["served"] == ours["offered"] - ours["open"] > 0
    assert rude["offered"] >= 60
    assert "all_crawlers" in rude["refused"]
    # How soon the gate fills depends on the machine; on any it has met the greedy one by the end.
    greedy = classes["greedy crawler"]
    assert greedy["slept"] + greedy["refused"].get("load_defer", 0) + greedy["open"] > 0
    # Both on our client: hardly refused, where the rude one nearly always is.
    polite = classes["polite client"]
    assert polite["offered"] >= 1
    assert sum(polite["refused"].values()) <= 2
    assert rude["failed"] == {}


def test_people_are_all_served_and_the_rude_crawler_is_refused(papers):
    done = run_demo("--seconds", "4", "--json", "--data", str(papers))
    assert done.returncode == 0, done.stderr
    assert "http://127.0.0.1:" in done.stderr
    told = json.loads(done.stdout)
    assert told["is_whole"]
    check(told["classes"])


def test_the_same_where_the_system_has_only_one_address(papers, monkeypatch, capsys):
    monkeypatch.setattr(demo, "has_loopback_network", lambda: False)
    from throttle.cli import main

    assert main(["demo", "--seconds", "4", "--json", "--data", str(papers)]) == 0
    told = capsys.readouterr()
    assert "X-Forwarded-For" in told.err
    check(json.loads(told.out)["classes"])


def test_a_port_in_use_is_one_line():
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run_demo("--port", str(port))
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


def test_a_broken_database_is_one_line_in_the_sites_own_words(tmp_path):
    (tmp_path / "library.sqlite3").write_bytes(b"no database at all" * 400)
    done = run_demo(APP_EXAMPLE_DATA=str(tmp_path))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / "library.sqlite3") in done.stderr
    assert (tmp_path / "library.sqlite3").read_bytes().startswith(b"no database at all")


@posix
@pytest.mark.parametrize("when", ["during the traffic", "after it"])
def test_ctrl_c_ends_in_order_with_the_table_so_far(when, papers, monkeypatch):
    source = (
        "import sys; from throttle.cli import demo, main; demo.TRAFFIC_SECONDS, demo.DRAIN_SECONDS = {}, 0.5;"
        "sys.exit(main(sys.argv[1:]))"
    )
    seconds, seen, code = (60, "Traffic for", 130) if when == "during the traffic" else (1, "stays at", 0)
    command = [sys.executable, "-c", source.format(seconds), "demo", "--data", str(papers)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        shown = ""
        while seen not in shown:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            shown += line
        if when == "during the traffic":
            time.sleep(1)  # the real thing, in another process: let some traffic run
        process.send_signal(signal.SIGINT)
        try:
            rest, errors = process.communicate(timeout=20)
        finally:
            process.kill()  # no test waits for ever
    assert errors == ""
    assert process.returncode == code
    assert "class " in shown + rest
    assert "people, " in shown + rest or "people " in shown + rest
    assert_closed(shown)


@posix
def test_the_site_goes_with_a_demo_that_is_killed_and_leaves_nothing(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path), "APP_EXAMPLE_DATA": ""}
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, env=environment) as process:
        shown = process.stdout.readline()
        assert list(tmp_path.glob("throttle-demo-*"))
        process.kill()
    deadline = time.monotonic() + 10
    while list(tmp_path.glob("throttle-demo-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.glob("throttle-demo-*"))
    time.sleep(0.1)
    assert_closed(shown)


def assert_closed(shown: str) -> None:
    """Nobody listens any more at the address that was printed."""
    port = int(shown.split("http://127.0.0.1:")[1].split()[0])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_site_that_dies_is_told_in_one_line(papers):
    with running_site(port=0, data=Path(papers), trusts_forwarding=False) as site:
        site.process.kill()
        site.process.wait()
        with pytest.raises(CommandError, match="has ended unexpectedly"):
            expect_alive(site)


def test_traffic_and_its_last_answers_take_no_more_than_the_seconds_asked_for():
    for total in (1, 4, 30, 35, 36, 100):
        seconds, drain = demo._shared_out(total)
        assert 0 < seconds <= 30
        assert seconds + drain <= total + 1e-9
    assert demo._shared_out(None) == (30, 5)
