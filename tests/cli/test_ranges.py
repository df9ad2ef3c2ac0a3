"""`throttle ranges`: what is downloaded takes the last one's place, and what is no list changes nothing."""

import json
import os
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest

from throttle.cli import main, ranges
from throttle.server.crawler_operators import LISTS

LIST = b'{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}]}'


def publish(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], bytes]) -> list[str]:
    """In place of the network; the addresses that were asked."""
    asked: list[str] = []

    def fetched(url: str) -> bytes:
        asked.append(url)
        return answer(url)

    monkeypatch.setattr(ranges, "fetched", fetched)
    return asked


def test_it_asks_for_every_list_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = publish(monkeypatch, lambda url: b"192.0.2.0/24,US\n" if "geofeed" in url else LIST)
    assert main(["ranges", str(tmp_path / "lists")]) == 0
    assert asked == list(LISTS.values())
    assert all(url.startswith("https://") for url in asked)
    names = {file.name for file in (tmp_path / "lists").iterdir()}
    assert names == {"meta.csv", *(f"{name}.json" for name in LISTS if name != "meta")}
    assert "gptbot: 2 networks" in capsys.readouterr().out


@pytest.mark.parametrize(
    "answer", [b"<html>", b"", b'["0.0.0.0/0"]', urllib.error.URLError("no route"), TimeoutError("timed out")]
)
def test_what_is_no_list_leaves_the_last_one_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: bytes | Exception
) -> None:
    (tmp_path / "gptbot.json").write_bytes(LIST)

    def fail(url: str) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return answer

    publish(monkeypatch, fail)
    assert main(["ranges", str(tmp_path), "gptbot"]) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["gptbot.json"]
    assert (tmp_path / "gptbot.json").read_bytes() == LIST
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("gptbot: ")


def test_a_list_that_has_not_changed_is_written_again_and_so_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, lambda url: LIST)
    (tmp_path / "gptbot.json").write_bytes(LIST)
    os.utime(tmp_path / "gptbot.json", (1_000_000_000, 1_000_000_000))
    assert main(["ranges", str(tmp_path), "gptbot"]) == 0
    assert (tmp_path / "gptbot.json").stat().st_mtime > 1_000_000_000


def test_a_list_whose_form_has_changed_takes_the_place_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, lambda url: LIST)
    (tmp_path / "gptbot.csv").write_text("198.51.100.0/24,US\n")
    assert main(["ranges", str(tmp_path), "gptbot"]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["gptbot.json"]


def test_machines_are_told_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(monkeypatch, lambda url: LIST)
    assert main(["ranges", "--json", str(tmp_path), "bingbot"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lists"] == [{"list": "bingbot", "url": LISTS["bingbot"], "networks": 2, "error": None}]


def test_a_list_that_nobody_publishes_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ranges", str(tmp_path), "https://evil.example/"])
    assert ended.value.code == 2
    assert "there is no list 'https://evil.example/'" in capsys.readouterr().err
