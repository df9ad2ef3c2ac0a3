"""What atheris runs in `make long` holds for the cases that it begins with."""

import subprocess
import sys
from contextlib import closing

import pytest

from tests.hostile import requests
from tests.hostile.fuzz import Case, seeds


def test_every_case_that_fuzzing_begins_with_holds() -> None:
    with closing(Case(requests)) as case:
        for seed in seeds(requests):
            case(seed)
        case(b"")
        case(bytes([4, 1, 255]) + b"10.0.0.2," + b"\n\x0f\x00<b>")


def test_a_case_that_breaks_a_promise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("throttle.server.refusal_log.describe", lambda agent: "<b>")
    with closing(Case(requests)) as case, pytest.raises(AssertionError, match="<b>"):
        case(seeds(requests)[0])


def test_without_atheris_it_says_so_and_skips() -> None:
    hidden = (
        "import sys; sys.modules['atheris'] = None; sys.argv = ['fuzz']; from tests.hostile.fuzz import main; main()"
    )
    told = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=True)
    assert "SKIPPED" in told.stdout
    assert "pip install atheris" in told.stdout
