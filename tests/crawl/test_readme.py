"""The README's examples of crawl jobs run as pasted: a proxy on loopback stands for the world."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.client.loopback import site
from throttle.cli.crawl_settings import per_host
from throttle.crawl import Problem

SECTION = (
    (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split("## Crawl jobs")[1].split("\n## ")[0]
)


def example(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)[0]


def ran(folder: Path, *command: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What it printed, and which paths were asked for."""
    with site() as proxy:
        environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        environment |= {"http_proxy": proxy.url, "XDG_CACHE_HOME": str(folder)}
        done = subprocess.run(
            [sys.executable, "-W", "error", *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done, proxy.paths()


def test_the_library_example_runs_as_pasted(tmp_path: Path) -> None:
    done, paths = ran(tmp_path, "-c", example("python"))
    assert done.stderr == ""
    pages = {f"http://example.org/page/{number}" for number in range(5)}
    assert {line.split()[1] for line in done.stdout.splitlines()} == pages
    assert set(paths) == pages | {"http://example.org/robots.txt"}
    assert (tmp_path / "pages.sqlite").exists()


def test_the_commands_run_as_pasted(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("http://example.org/page/1\nhttp://example.org/page/2\n")
    for line in example("sh").splitlines():
        name, *arguments = shlex.split(line)
        assert name == "throttle"
        done, paths = ran(tmp_path, "-m", "throttle", *arguments)
        assert done.returncode == 0, done.stderr
        assert paths
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "report.html").exists()


def test_the_file_of_hosts_is_one(tmp_path: Path) -> None:
    (tmp_path / "hosts.toml").write_text(example("toml"))
    assert per_host(tmp_path / "hosts.toml")["example.org"].rate == 20


def test_every_problem_is_told_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "crawl.md").read_text(encoding="utf-8")
    told = re.sub(r"\s+", " ", text)
    assert [problem.value for problem in Problem if problem.value not in told] == []
