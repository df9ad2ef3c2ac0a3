"""The README's examples of the client half run as pasted: a proxy on loopback stands for the world."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.loopback import site
from throttle.client.settings import SETTINGS

SECTION = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split("## The client half")[1]
SECTION = SECTION.split("\n## ")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
NAMES = [re.search(r"import (httpx2|httpx|aiohttp)", example)[1] for example in EXAMPLES]  # type: ignore[index]


def test_there_is_one_for_each_client_and_one_that_is_watched() -> None:
    assert NAMES == ["httpx", "httpx2", "aiohttp", "httpx"]


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_an_example_runs_as_pasted_in_some_ten_lines(example: str) -> None:
    with site() as proxy:
        environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", example],
            env=environment | {"http_proxy": proxy.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.stderr == ""
    asked = [f"http://example.org/page/{number}" for number in range(len(proxy.asked))]
    assert len(asked) >= 3
    assert sorted(proxy.paths()) == asked
    assert all(line.startswith(("200 ", "throttle.")) for line in ran.stdout.splitlines())
    assert len([line for line in example.splitlines() if line]) <= 13


def test_every_setting_is_told_in_the_docs() -> None:
    told_in_full = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    table = told_in_full.split("| setting of every adapter |")[1].split("\n\n")[0]
    told = set(re.findall(r"`([a-z_]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:])))
    assert told == SETTINGS | {"hosts"}
