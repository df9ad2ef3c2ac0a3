"""The command as its user meets it: a process of its own, against a small site on loopback addresses."""

import asyncio
import csv
import gzip
import json
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crawl.site import Asked, Site, Writer, answer, html, serving
from throttle.cli import main
from throttle.cli.crawl_settings import UsageError, per_host
from throttle.client.settings import Rates
from throttle.crawl import HostOptions

ME = ("--contact", "tests@example.org")
TREE = Path(__file__).parents[2]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


async def started(folder: Path, *arguments: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "throttle",
        "crawl",
        *map(str, arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={"XDG_CACHE_HOME": str(folder / "cache"), "PATH": "", "PYTHONPATH": str(TREE)},
    )


async def crawl(folder: Path, *arguments: str | Path, typed: bytes = b"") -> Ended:
    process = await started(folder, *arguments)
    out, err = await process.communicate(typed)
    assert process.returncode is not None
    assert b"Traceback" not in err, err.decode()
    return Ended(process.returncode, out.decode(), err.decode())


async def stopped_at_once(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    while b"again stops at once" not in (line := await process.stderr.readline()):
        assert line, "ended by itself"
    process.send_signal(signal.SIGINT)  # before it had read the first, both would be one
    await asyncio.wait_for(process.communicate(), 10)


def on_a_site(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    """The test gets a folder and a running site."""

    @wraps(test)
    def run(tmp_path: Path) -> None:
        async def with_site() -> None:
            async with serving() as site:
                await asyncio.wait_for(test(tmp_path, site), 60)

        asyncio.run(with_site())

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look for the site among its fixtures
    return run


def results(text: str) -> dict[str, dict[str, Any]]:
    return {table["url"]: table for table in map(json.loads, text.splitlines())}


@on_a_site
async def test_urls_come_from_arguments_files_and_standard_input_and_results_go_to_a_pipe(
    folder: Path, site: Site
) -> None:
    (folder / "list.txt.gz").write_bytes(gzip.compress(site.url("/from-a-file").encode()))
    ended = await crawl(
        folder, site.url("/given"), "list.txt.gz", "-", *ME, typed=f"{site.url('/typed')}\nnonsense".encode()
    )
    assert ended.code == 0
    told = results(ended.out)
    assert {url: table["status"] for url, table in told.items()} == {
        site.url("/given"): 200,
        site.url("/from-a-file"): 200,
        site.url("/typed"): 200,
        "nonsense": None,
    }
    assert "4 URLs in" in ended.err
    assert "3 fine, 1 broken" in ended.err


@on_a_site
async def test_each_form_of_output_holds_every_result(folder: Path, site: Site) -> None:
    site.pages["/evil"] = answer(404, kind='=HYPERLINK("x")')
    urls = [site.url("/fine"), site.url("/evil")]
    await crawl(folder, *urls, *ME, "-o", "out.csv")
    with (folder / "out.csv").open(newline="") as stream:
        rows = {row["url"]: row for row in csv.DictReader(stream)}
    assert {url: row["status"] for url, row in rows.items()} == {urls[0]: "200", urls[1]: "404"}
    assert rows[urls[1]]["content_type"].startswith("'=")  # no formula for a spreadsheet
    await crawl(folder, *urls, *ME, "-o", "out.sqlite")
    with closing(sqlite3.connect(folder / "out.sqlite")) as db:
        assert db.execute("SELECT url, status FROM crawled ORDER BY status").fetchall() == [
            (urls[0], 200),
            (urls[1], 404),
        ]


@on_a_site
async def test_the_summary_for_machines(folder: Path, site: Site) -> None:
    site.pages["/gone"] = answer(410)
    ended = await crawl(folder, site.url("/fine"), site.url("/gone"), site.url("/gone"), *ME, "--json", "--require-ok")
    assert ended.code == 1
    table = json.loads(ended.out)
    assert (table["schema_version"], table["urls"], table["broken"], table["lines_known"]) == (1, 2, 1, 1)
    assert table["statuses"] == {"200": 1, "410": 1}


@on_a_site
async def test_sitemaps_are_read_with_their_index_and_what_cannot_be_read_is_told(folder: Path, site: Site) -> None:
    one = f"<urlset><url><loc>{site.url('/page')}</loc></url></urlset>".encode()
    site.pages["/one.xml.gz"] = answer(body=gzip.compress(one), kind="application/gzip")
    index = "".join(f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in ("/one.xml.gz", "/gone.xml"))
    site.pages["/sitemap.xml"] = answer(body=f"<sitemapindex>{index}</sitemapindex>".encode())
    site.pages["/gone.xml"] = answer(404)
    ended = await crawl(folder, "--sitemap", site.url("/sitemap.xml"), *ME)
    assert set(results(ended.out)) == {site.url("/page")}
    assert f"sitemap {site.url('/gone.xml')}: answered 404" in ended.err
    assert ended.code == 1


@on_a_site
async def test_the_report_needs_nothing_else_and_obeys_nobody(folder: Path, site: Site) -> None:
    site.pages["/"] = html("/gone?<script>alert(1)</script>")
    site.default = answer(404)
    ended = await crawl(folder, site.url("/"), "--follow", "1", *ME, "--report", "r.html", "--plot", "p.png", "--quiet")
    assert ended.code == 0
    page = (folder / "r.html").read_text()
    assert "<script" not in page
    assert "http-equiv=Content-Security-Policy" in page
    assert "src=" not in page.replace("img-src", "")
    assert "404" in page
    assert site.url("/") in page  # where the link stands
    assert "<svg" in page
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


@on_a_site
async def test_a_full_disk_under_the_output_is_told_and_the_same_command_writes_it_again(
    folder: Path, site: Site
) -> None:
    output = folder / "out.jsonl"
    output.symlink_to("/dev/full")
    command = (*(site.url(f"/{number}") for number in range(3)), *ME, "-o", output)
    ended = await crawl(folder, *command)
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("throttle crawl: output: No space left on device; what was recorded")
    output.unlink()
    site.log.clear()
    assert (await crawl(folder, *command)).code == 0
    assert len(results(output.read_text())) == 3
    assert len(site.paths()) < 3  # what was recorded is not fetched again


@on_a_site
async def test_control_characters_that_a_site_sends_reach_no_output(folder: Path, site: Site) -> None:
    site.pages["/evil"] = answer(404, kind="text/\x1b]0;evil\x07\x9b31m")
    for name in ("out.csv", "out.sqlite"):
        await crawl(folder, site.url("/evil"), *ME, "-o", name)
        written = (folder / name).read_bytes()
        assert b"\\x1b]0;evil\\x07\\x9b31m" in written
        assert not {b"\x1b]", b"\xc2\x9b"} & {written[at : at + 2] for at in range(len(written))}


@on_a_site
async def test_control_characters_reach_no_terminal(folder: Path, site: Site) -> None:
    ended = await crawl(folder, "-", *ME, typed="http://a/\x1b[2J\x9b\u202e".encode())
    assert "\x1b" not in ended.out + ended.err
    assert "\x9b" not in ended.out + ended.err
    assert "\u202e" not in ended.out + ended.err


@on_a_site
async def test_ctrl_c_ends_gently_and_the_same_command_goes_on(folder: Path, site: Site) -> None:
    urls = [site.url(f"/{number}", host=1 + number % 3) for number in range(18)]
    (folder / "list").write_text("\n".join(urls))
    process = await started(folder, "list", *ME, "-o", "out.jsonl")
    is_due = asyncio.Event()
    site.on_request = lambda: len(site.paths()) > 5 and is_due.set()
    await is_due.wait()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 130
    assert b"the same command goes on" in err
    first = set(site.paths())
    assert len(results((folder / "out.jsonl").read_text())) == len(first)
    site.log.clear()
    ended = await crawl(folder, "list", *ME, "-o", "out.jsonl")
    assert ended.code == 0
    assert set(results((folder / "out.jsonl").read_text())) == set(urls)
    assert not first & set(site.paths())
    assert not list((folder / "cache/throttle/crawl").iterdir()), "a job that is done leaves nothing behind"


@on_a_site
async def test_ctrl_c_twice_ends_at_once(folder: Path, site: Site) -> None:
    is_asked = asyncio.Event()

    async def silent(asked: Asked, writer: Writer) -> None:
        is_asked.set()
        await asyncio.sleep(50)

    site.pages["/silent"] = silent
    process = await started(folder, site.url("/silent"), *ME)
    await is_asked.wait()
    await stopped_at_once(process)
    assert process.returncode == 130


@on_a_site
async def test_ctrl_c_ends_while_the_list_on_standard_input_is_still_open(folder: Path, site: Site) -> None:
    process = await started(folder, "-", site.url("/x"), *ME)
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.write(f"{site.url('/y')}\n".encode())
    line = b""
    while b" done" not in line:  # it runs, and waits for more
        line = await process.stderr.readline()
        assert line, "ended by itself"
    process.send_signal(signal.SIGINT)
    err = (await process.stderr.read()).decode()
    assert await process.wait() == 130, err
    assert "Fatal" not in err
    assert "of what was read, and not all was" in err


@on_a_site
async def test_a_second_process_does_not_write_into_the_output_of_the_first(folder: Path, site: Site) -> None:
    is_asked = asyncio.Event()

    async def waits(asked: Asked, writer: Writer) -> None:
        is_asked.set()
        await asyncio.sleep(50)

    site.pages["/waits"] = waits
    command = (site.url("/x"), site.url("/waits", host=2), *ME, "-o", "out.jsonl")
    first = await started(folder, *command)
    await is_asked.wait()
    second = await crawl(folder, *command)
    assert second.code == 1
    assert "out.jsonl: another process writes it" in second.err
    await stopped_at_once(first)
    assert set(results((folder / "out.jsonl").read_text())) == {site.url("/x")}


@on_a_site
async def test_what_another_process_has_done_is_said(folder: Path, site: Site) -> None:
    is_asked, may_go = asyncio.Event(), asyncio.Event()

    async def waits(asked: Asked, writer: Writer) -> None:
        is_asked.set()
        await may_go.wait()
        answer()(asked, writer)

    site.pages["/waits"] = waits
    command = (site.url("/waits"), *ME)
    first = await started(folder, *command)
    await is_asked.wait()
    second = await started(folder, *command)
    assert second.stderr is not None
    assert b"0 of 1 done" in await second.stderr.readline()
    may_go.set()
    out, err = await second.communicate()
    assert out == b""
    assert b"1 more were done by another process" in err
    assert len(results((await first.communicate())[0].decode())) == 1


@on_a_site
async def test_a_job_that_was_begun_with_other_options_is_not_taken_for_done(folder: Path, site: Site) -> None:
    site.pages["/"] = html("/a")
    command = (site.url("/"), *ME, "--job", "job.sqlite")
    await crawl(folder, *command)
    ended = await crawl(folder, *command, "--follow", "1")
    assert ended.code == 1
    assert "the job was begun otherwise (follow was 0, now 1)" in ended.err
    assert set(results((await crawl(folder, *command, "--follow", "1", "--fresh")).out)) == {
        site.url("/"),
        site.url("/a"),
    }


@on_a_site
async def test_a_place_that_cannot_keep_the_job_is_told(folder: Path, site: Site) -> None:
    (folder / "cache").write_text("a file where a folder should be")
    ended = await crawl(folder, site.url("/"), *ME)
    assert ended.code == 1
    assert "say with --job FILE where the job is kept" in ended.err
    assert site.log == []


@on_a_site
async def test_at_the_deadline_it_says_what_is_left(folder: Path, site: Site) -> None:
    (folder / "list").write_text("\n".join(site.url(f"/{number}") for number in range(100)))
    ended = await crawl(folder, "list", *ME, "--deadline", "1")
    assert ended.code == 1
    assert "the deadline has come: " in ended.err
    assert "the same command goes on" in ended.err


@on_a_site
async def test_a_finished_job_that_was_given_a_place_tells_its_results_again_until_it_is_forgotten(
    folder: Path, site: Site
) -> None:
    command = (site.url("/x"), *ME, "--job", "job.sqlite")
    first = await crawl(folder, *command)
    site.log.clear()
    again = await crawl(folder, *command)
    assert results(again.out) == results(first.out)
    assert site.log == []
    await crawl(folder, *command, "--fresh")
    assert site.paths() == ["/x"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing to crawl"),
        (["http://127.0.0.1/"], "an e-mail address or a URL; it is missing"),
        (["nowhere.txt", *ME], "nowhere.txt: no such file"),
        ([".", *ME], ".: a directory; name a file"),
        (["--sitemap", "nowhere.xml", *ME], "nowhere.xml: no such file"),
        (["--sitemap", ".", *ME], ".: a directory; name a file"),
        (["http://a/", *ME, "-o", "out.xls"], "must end with one of"),
        (["http://a/", *ME, "-o", "no/such/out.csv"], "there is no folder no/such"),
        (["http://a/", *ME, "--plot", "p.gif"], "must end with .png or .html"),
        (["http://a/", *ME, "--timeout", "0"], "timeout must be above 0"),
        (["http://a/", *ME, "--max-rate", "nan"], "max_rate must be above 0"),
        (["http://a/", *ME, "--follow", "1", "--head"], "links cannot be followed with HEAD"),
        (["http://a/", *ME, "-o", "a.sqlite", "--job", "b.sqlite"], "the job's own file"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("THROTTLE_CONTACT", raising=False)
    assert main(["crawl", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert told in captured.err


def test_settings_for_single_hosts(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('["Example.org"]\nrate = 0.5\nin_flight = 2\nrobots = false\n["slow.example"]\nmin_delay = 3\n')
    assert per_host(path) == {
        "example.org": HostOptions(rate=0.5, rates=Rates(in_flight=2), robots=False),
        "slow.example": HostOptions(min_delay=3),
    }


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "[a]\nrates = 1",
        "[a]\nrate = 0",
        "[a]\nrate = 'x'",
        "[a]\nrobots = 1",
        "[",
        "[a]\nrate = nan",
        "\udcff",
    ],
)
def test_a_wrong_file_of_hosts_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match=r"hosts\.toml"):
        per_host(path)
