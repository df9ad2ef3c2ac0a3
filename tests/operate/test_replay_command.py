"""`throttle replay` as its user meets it: figures, exit codes, one line for whatever is wrong."""

import io
import json
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from throttle.cli import main

SAMPLE = Path(__file__).parent.parent / "data" / "access_log_sample.log.gz"
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0"


def log(path: Path, count: int = 12, agent: str = AGENT, request: str = "GET / HTTP/1.1") -> str:
    line = f'192.0.2.7 - - [17/May/2015:12:05:03 +0200] "{request}" 200 512 "-" "{agent}"\n'
    path.write_text(line * count)
    return str(path)


def replay(*arguments: str) -> int:
    return main(["replay", *arguments])


def report_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert replay(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_on_the_sample_log_no_browser_page_is_refused_under_the_pages_rules(capsys: Any) -> None:
    report = report_of(capsys, str(SAMPLE))
    assert report["schema_version"] == 1
    assert report["coverage"]["parsed"] >= 9999
    assert report["coverage"]["late"] == 0
    people = report["classes"]["browser"]
    assert people["requests"] > 1500
    assert (people["refused"], people["callers_refused"]) == (0, 0)
    assert report["files"]["with_files"]["browser"]["refused"] > 0
    assert report["classes"]["known_crawler"]["refused"] > 500


def test_the_text_tells_coverage_first_and_that_the_load_gate_was_not_replayed(capsys: Any) -> None:
    assert replay(str(SAMPLE)) == 0
    out = capsys.readouterr().out
    assert out.startswith("Read 10,000 lines: 10,000 parsed")
    assert "People hit at least once: 0 of" in out
    assert "The load gate was not replayed" in out


def test_addresses_are_shown_only_when_asked_for(tmp_path: Path, capsys: Any) -> None:
    name = log(tmp_path / "log")
    with open(name, "a") as file:
        file.write("broken 192.0.2.7 and 2001:db8::17 GET /?token=secret\n")
    page = tmp_path / "page.html"
    for output in ((), ("--json",), ("--html", str(page))):
        assert replay(name, *output) == 0
        out = capsys.readouterr().out + (page.read_text() if page.exists() else "")
        for private in ("192.0.2.7", "2001:db8::17", "secret"):
            assert private not in out
        assert "caller-" in out
    assert replay(name, "--show-addresses") == 0
    assert "192.0.2.7" in capsys.readouterr().out


@pytest.mark.parametrize(("condition", "code"), [("callers_refused==1", 0), ("refused>2", 1), ("refused_share<0.1", 1)])
def test_a_requirement_decides_the_exit_code(tmp_path: Path, capsys: Any, condition: str, code: int) -> None:
    assert replay(log(tmp_path / "log"), "--require", f"browser.{condition}") == code
    assert capsys.readouterr().err.startswith("throttle replay: not met: browser." if code else "")


@pytest.mark.parametrize("condition", ["people.refused==0", "browser.refused", "browser.refused==0.0.0", "==1"])
def test_a_requirement_on_no_figure_is_wrong_usage(tmp_path: Path, capsys: Any, condition: str) -> None:
    assert replay(log(tmp_path / "log"), "--require", condition) == 2
    assert capsys.readouterr().err.count("\n") == 1


class _Checked(HTMLParser):
    """Keeps the text, and fails on a tag that the report does not write."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "link"), tag
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_else_and_escapes_what_the_log_says(tmp_path: Path, capsys: Any) -> None:
    name = log(tmp_path / "<img src=x>.log")
    with open(name, "a") as file:
        file.write("<script>alert(1)</script>\n")
    page = tmp_path / "page.html"
    assert replay(name, "--html", str(page)) == 0
    checked = _Checked()
    checked.feed(page.read_text())
    assert "<script>alert(1)</script>" in checked.text
    assert "People hit at least once: 1 of 1 browsers." in checked.text


def test_a_page_never_overwrites_a_file_that_is_none(tmp_path: Path, capsys: Any) -> None:
    name, other = log(tmp_path / "log"), log(tmp_path / "other")
    assert replay(name, "--html", other) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert Path(other).read_text() == Path(name).read_text()


def test_limits_come_from_a_file(tmp_path: Path, capsys: Any) -> None:
    limits = tmp_path / "throttle.toml"
    limits.write_text("[limits]\nstack_hits = 3\n")
    report = report_of(capsys, log(tmp_path / "log"), "--limits", str(limits))
    assert report["classes"]["browser"]["refused"] == 9
    assert report["limits"]["stack_hits"] == 3


def test_standard_input_is_read(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(Path(log(tmp_path / "log")).read_bytes())))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", stdin)
    assert report_of(capsys, "-")["coverage"]["parsed"] == 12


def test_what_is_wrong_is_told_in_one_line_and_the_exit_code_is_2(tmp_path: Path, capsys: Any) -> None:
    good = log(tmp_path / "log")
    (tmp_path / "empty").touch()
    (tmp_path / "noise").write_bytes(b"\xff\xfe\0n\0o\n" * 50)
    files = {"key": "[limits]\nload = 3", "unit": '[limits]\nstack_seconds = "15s"', "toml": "limits"}
    for name, content in files.items():
        (tmp_path / f"{name}.toml").write_text(content)
    for arguments, said in (
        ([str(tmp_path / "missing")], "no such file"),
        ([str(tmp_path)], "a directory"),
        ([str(tmp_path / "empty")], "is empty"),
        ([str(tmp_path / "noise")], "none of 50 lines"),
        ([good, "--format", "combined"], "format string"),
        ([good, "--limits", str(tmp_path / "key.toml")], "'load'"),
        ([good, "--limits", str(tmp_path / "unit.toml")], "stack_seconds='15s'"),
        ([good, "--limits", str(tmp_path / "toml.toml")], "not TOML"),
        ([good, "--limits", str(tmp_path / "missing.toml")], "missing.toml"),
        ([good, "--trusted-proxy", "10.0.0.0/99"], "10.0.0.0/99"),
        ([good, "--exempt-prefix", "static"], "static"),
        ([good, "--html", str(tmp_path)], "a directory"),
        ([good, "--html", str(tmp_path / "no" / "page.html")], "No such file"),
    ):
        assert replay(*arguments) == 2, arguments
        err = capsys.readouterr().err
        assert err.startswith("throttle replay: "), err
        assert said in err
        assert err.count("\n") == 1, err
    for duration in ("200ms", "-1", "nan", "0"):
        with pytest.raises(SystemExit) as ended:
            replay(good, "--assume-duration", duration)
        assert ended.value.code == 2
        assert "seconds" in capsys.readouterr().err


def test_ctrl_c_midway_reports_what_was_read_so_far(tmp_path: Path) -> None:
    code = "import sys; from throttle.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "replay", "-", "--json"]
    line = Path(log(tmp_path / "log", 1)).read_bytes()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(line * 60_000)
        process.stdin.flush()  # taken from the pipe, all but the last of its buffers
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    report = json.loads(out)
    assert process.returncode == 130
    assert report["interrupted"] is True
    assert 10_000 < report["coverage"]["lines"] <= 60_000
    assert report["classes"]["browser"]["requests"] == report["coverage"]["hits"] > 0
    assert err == b""


def test_a_site_with_its_own_table_of_agents_is_replayed_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text('192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "Xqz/1.0"\n')
    (tmp_path / "agents.txt").write_text("crawler\tXqz\n")
    (tmp_path / "throttle.toml").write_text(f"agent_table = '{tmp_path / 'agents.txt'}'\n")
    command = [str(tmp_path / "log"), "--limits", str(tmp_path / "throttle.toml"), "--json"]
    assert replay(*command, "--require", "known_crawler.requests==1") == 0
    (tmp_path / "agents.txt").write_text("nonsense\n")
    assert replay(*command) == 2
    assert "agents.txt, line 1" in capsys.readouterr().err


def test_a_load_limit_that_a_site_finds_by_itself_cannot_be_replayed(tmp_path: Path, capsys: Any) -> None:
    limits = tmp_path / "throttle.toml"
    limits.write_text("[limits]\nload_max = 'auto'\n")
    assert replay(log(tmp_path / "log"), "--limits", str(limits)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f'throttle replay: {limits}: load_max = "auto" cannot be replayed')
    assert said.count("\n") == 1
