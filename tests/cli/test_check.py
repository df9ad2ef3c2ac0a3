"""`throttle check`: sentences for people, JSON for machines, one line for what is wrong."""

import json
from pathlib import Path

import pytest

from throttle.cli import main


def test_it_prints_the_policy_as_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "throttle.toml"
    file.write_text("[limits]\nload_max = 30\n")
    assert main(["check", str(file)]) == 0
    out = capsys.readouterr().out
    assert "while fewer than 30 other requests run" in out
    assert "Never throttled: /robots.txt, health checks, mounted static files, CORS preflights." in out
    assert main(["check", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["load_max"] == 30


def test_it_does_not_print_the_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "throttle.toml"
    file.write_text("cookie_secret = 'a secret of the site'\npreset = 'modern'")
    for command in (["check", str(file)], ["check", "--json", str(file)]):
        assert main(command) == 0
        assert "a secret" not in capsys.readouterr().out


def test_it_says_whose_lists_of_addresses_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(preset: str) -> str:
        file = tmp_path / "throttle.toml"
        file.write_text(f"preset = '{preset}'\ncrawler_ranges = '{tmp_path / 'lists'}'")
        assert main(["check", str(file)]) == 0
        return capsys.readouterr().out

    assert "There is no list in" in said("modern")
    (tmp_path / "lists").mkdir()
    for name in ("ahrefs", "gptbot"):
        (tmp_path / "lists" / f"{name}.json").write_text('["192.0.2.0/28"]')
    assert "whole and fresh: Ahrefs. Not all, or old ones: OpenAI." in said("modern")
    assert "No crawler is verified, and crawler_ranges not looked at" in said("connotea")


@pytest.mark.parametrize("text", ["[limits]\nload_max = '30'\n", "[limit]\n", "=", "store = 'redis'", None])
def test_what_is_wrong_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    file = tmp_path / "throttle.toml"
    if text is not None:
        file.write_text(text)
    assert main(["check", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(file) in err
