"""`throttle load` as its user sees it, against a site of a few lines on a real socket; short."""

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from throttle.cli import load, main, target
from throttle.cli.requirement import RequirementError, requirement

MIX = """
title = "two classes"
seconds = 1
[who.people]
kind = "people"
count = 40
think_seconds = 3
[who."rude bots"]
kind = "robots"
rate = 30
addresses = 20
[site]
pages = ["/", "/page"]
"""


class _Site(BaseHTTPRequestHandler):
    """Serves browsers, refuses robots."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_person = "Mozilla" in self.headers.get("User-Agent", "")
        self.server.callers.add(self.headers.get("X-Forwarded-For") or self.client_address[0])  # type: ignore[attr-defined]
        self.send_response(200 if is_person else 503)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        server.callers = set()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def mix(tmp_path: Path) -> str:
    path = tmp_path / "mix.toml"
    path.write_text(MIX)
    return str(path)


def url(site) -> str:
    return f"http://127.0.0.1:{site.server_address[1]}"


def test_the_report_tells_by_class_what_was_served_and_refused(site, mix, capsys):
    assert main(["load", url(site), "--mix", mix, "--json"]) == 0
    (ran,) = json.loads(capsys.readouterr().out)["runs"]
    people, bots = ran["classes"]["people"], ran["classes"]["rude bots"]
    assert people["served"] == people["offered"] > 5
    assert bots["refused"] == {"unnamed": bots["offered"]}
    assert ran["is_whole"]


def test_callers_have_addresses_of_their_own(site, mix, capsys):
    assert main(["load", url(site), "--mix", mix, "--forwarded", "--json"]) == 0
    assert len(site.callers - {"127.0.0.1"}) > 15


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("browser.served_share==1", 0),
        ("people.p95<20", 0),
        ("rude_bots.served>0", 1),
        ("rude_bots.p95<9", 1),
    ],
)
def test_a_requirement_decides_the_exit_code(site, mix, capsys, condition, code):
    assert main(["load", url(site), "--mix", mix, "--require", condition]) == code
    assert capsys.readouterr().err.startswith("throttle load: not met: rude_bots." if code else "")


def test_two_sites_get_the_same_and_figures_of_the_other_can_be_required(site, mix, capsys):
    given = ["load", url(site), "--compare", url(site), "--mix", mix, "--json"]
    assert main([*given, "--require", "without.people.served_share==1"]) == 0
    one, other = json.loads(capsys.readouterr().out)["runs"]
    for name in ("people", "rude bots"):
        assert one["classes"][name]["offered"] == other["classes"][name]["offered"]


@pytest.mark.parametrize("name", ["storm.html", "storm.png"])
def test_a_report_is_written_for_people(site, mix, capsys, tmp_path, name):
    assert main(["load", url(site), "--mix", mix, "--report", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes()[:15] in (b"<!doctype html>", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHD")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["http://127.0.0.1:1", "--mix", "nonsense"], "neither a file nor a mix"),
        (["127.0.0.1:1"], "no URL"),
        (["https://127.0.0.1:1"], "https is not spoken"),
        (["http://127.0.0.1:99999"], "99999"),
        (["http://127.0.0.1:1/path"], "only scheme, host and port"),
        (["http://no-such-host.invalid"], "no such host"),
        (["http://192.0.2.1.:80"], "no such host"),
        (["http://198.51.100.7", "--mix", "demo"], "--i-own-this-host"),
        (["http://127.0.0.1:1", "--compare"], "--compare needs the URL"),
        (["demo", "--compare", "http://127.0.0.1:1"], "--compare takes no URL"),
        (["http://127.0.0.1:1", "--require", "martians.p95<1"], "no figure"),
        (["http://127.0.0.1:1", "--report", "storm.jpg"], ".html or .png"),
        (["http://127.0.0.1:1", "--seconds", "0"], "no time"),
        (["http://127.0.0.1:1", "--scale", "nan"], "0.001"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, monkeypatch, given, told):
    monkeypatch.setattr(target, "_is_near", lambda address: address.startswith("127."))
    try:
        code = main(["load", *given])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert told in said.err
    assert len(said.err.splitlines()) == 1


def test_no_site_there_is_one_line_and_exit_code_1(site, mix, capsys):
    port = site.server_address[1]
    site.server_close()
    site.shutdown()
    assert main(["load", f"http://127.0.0.1:{port}", "--json"]) == 1
    assert "no connection" in capsys.readouterr().err


def test_ctrl_c_tells_what_was_measured_so_far(site, mix, capsys, monkeypatch):
    from throttle.load.clockwork import Clockwork

    counted, sent = Clockwork._one, []

    async def interrupted(self, ask):
        answer = await counted(self, ask)
        if ask.at > 0.5 and not sent:
            sent.append(signal.raise_signal(signal.SIGINT))
        return answer

    monkeypatch.setattr(Clockwork, "_one", interrupted)
    assert main(["load", url(site), "--mix", mix]) == 130
    said = capsys.readouterr().out
    assert "Interrupted. So far:" in said
    assert "rude bots, refused by: unnamed" in said


@pytest.mark.parametrize(
    ("address", "is_near"),
    [("127.9.9.9", True), ("::1", True), ("10.1.2.3", True), ("fe80::1", True), ("0.0.0.0", False), ("8.8.8.8", False)],
)
def test_only_this_machine_and_private_networks_are_loaded_unasked(address, is_near):
    assert target._is_near(address) is is_near


def test_a_requirement_on_what_was_not_measured_is_not_met():
    one = requirement("people.p95<1", ["people.p95"])
    assert not one.is_met({"people.p95": None})
    assert "nothing was measured" in one.why_not({"people.p95": None})
    with pytest.raises(RequirementError):
        requirement("people.p95<", ["people.p95"])


@pytest.mark.parametrize("name", ["bots_(AI)", "a&b=c<1", "people_[/red]"])
def test_a_class_of_any_name_can_be_required_something_of(name):
    for sign in ("==", "!=", "<=", ">=", "<", ">"):
        one = requirement(f"{name}.p95{sign}0.3", [f"{name}.p95"])
        assert (one.figure, one.sign, one.number) == (f"{name}.p95", sign, 0.3)


def test_the_demo_site_is_started_without_its_throttle_to_be_compared():
    from argparse import Namespace

    sides = load._sides(Namespace(target="demo", compare="demo", is_owned=False))
    assert [(side.target, side.throttled) for side in sides] == [(None, False), (None, True)]


def test_the_demo_site_tells_what_runs_and_sleeps_against_its_limits(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("APP_EXAMPLE_DATA", str(tmp_path))
    assert main(["load", "demo", "--mix", "demo", "--seconds", "2", "--json"]) == 0
    (ran,) = json.loads(capsys.readouterr().out)["runs"]
    assert len(ran["counts"]) >= 3
    assert {(told["load_max"], told["sleeping_max"]) for told in ran["counts"]} == {(15, 10)}
    assert ran["classes"]["people"]["refused"] == {}


def test_a_site_without_the_throttle_counts_what_runs_itself(capsys):
    import asyncio

    from throttle.cli.demo_site import Counted

    async def run():
        async def app(scope, receive, send):
            telling = asyncio.create_task(counted.tell())
            await asyncio.sleep(0)
            telling.cancel()

        counted = Counted(app)
        await counted({"type": "http"}, None, None)
        return counted.running

    assert asyncio.run(run()) == 0
    assert capsys.readouterr().out == "counts 1 0 0 0\n"
