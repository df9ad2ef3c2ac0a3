"""Promise 13: kill any worker at any moment, and every URL ends with one result, and none is fetched that had one."""

import asyncio
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.crawl.site import Site, serving
from throttle.crawl.recorder import BATCH

CONCURRENCY = 64
WORKER = Path(__file__).with_name("worker.py")


def recorded(job: Path) -> list[str]:
    with closing(sqlite3.connect(job)) as db:
        return [url for (url,) in db.execute("SELECT u.key FROM results r JOIN urls u ON u.id = r.url_id")]


class Killed:
    """Starts workers on one job, kills each after some requests, and looks at what came of it."""

    def __init__(self, folder: Path, site: Site, urls: int, seed: int) -> None:
        self.site = site
        self.random = Random(seed)
        self.job = folder / "job.sqlite"
        self.list = folder / "urls.txt"
        self.urls = [site.url(f"/{number}", host=1 + number % 12) for number in range(urls)]
        self.list.write_text("\n".join(self.urls))
        self.told: Counter[str] = Counter()
        self.fetched_anew = 0

    async def run(self, kill_after: int | None) -> None:
        """One worker, killed when so many requests have come, or some moments later; None: to its end."""
        before = set(recorded(self.job)) if self.job.exists() else set()
        self.site.log.clear()
        is_due = asyncio.Event()
        self.site.on_request = lambda: kill_after is not None and len(self.site.log) >= kill_after and is_due.set()
        worker = await asyncio.create_subprocess_exec(
            sys.executable, str(WORKER), str(self.job), str(self.list), stdout=asyncio.subprocess.PIPE
        )
        assert worker.stdout is not None
        reading = asyncio.ensure_future(worker.stdout.read())
        if kill_after is not None:
            ended = asyncio.ensure_future(worker.wait())
            await asyncio.wait([ended, asyncio.ensure_future(is_due.wait())], return_when=asyncio.FIRST_COMPLETED)
            for _ in range(self.random.randrange(200)):  # anywhere between two batches
                await asyncio.sleep(0)
            if worker.returncode is None:
                worker.kill()
        code = await worker.wait()
        assert kill_after is not None or code == 0
        self.told.update(line.split()[0] for line in (await reading).decode().splitlines(keepends=True) if "\n" in line)
        asked = self.site.counts()
        assert not before & set(asked), "fetched again though it had a result"
        self.fetched_anew += len(set(asked) - set(recorded(self.job)))

    def check(self, kills: int) -> None:
        results = recorded(self.job)
        assert sorted(results) == sorted(self.urls), "every URL has one result"
        assert max(self.told.values()) == 1, "none was told twice as new"
        # What a kill costs: what was open, and the batches that were gathered and being written.
        assert self.fetched_anew <= kills * (CONCURRENCY + 2 * BATCH)


async def kill_often(folder: Path, kills: int, urls: int, seed: int) -> None:
    async with serving() as site:
        killed = Killed(folder, site, urls, seed)
        for _ in range(kills):
            await killed.run(killed.random.randrange(1, max(2, 2 * urls // kills)))
        await killed.run(None)
        killed.check(kills)


def test_promise_13_a_worker_killed_five_times_loses_nothing_and_fetches_nothing_twice_that_had_a_result(
    tmp_path: Path,
) -> None:
    asyncio.run(kill_often(tmp_path, kills=5, urls=600, seed=1))


@pytest.mark.long
def test_promise_13_a_worker_killed_a_hundred_times_loses_nothing(tmp_path: Path) -> None:
    asyncio.run(kill_often(tmp_path, kills=100, urls=6000, seed=2))


def test_several_workers_of_one_job_share_it_and_outlive_one_that_is_killed(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving() as site:
            killed = Killed(tmp_path, site, urls=600, seed=3)
            await asyncio.gather(killed.run(40), killed.run(None), killed.run(None))
            await killed.run(None)
            assert sorted(recorded(killed.job)) == sorted(killed.urls)
            assert max(killed.told.values()) == 1

    asyncio.run(run())
