"""Several real processes against one real site."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks.fleet.site import Hit, Site


@dataclass(frozen=True, slots=True)
class Outcome:
    hits: list[Hit]
    began: float
    calls: int
    processes: int

    def between(self, start: float, end: float) -> list[Hit]:
        """Seconds since all were there."""
        return [hit for hit in self.hits if start <= hit.at - self.began < end]

    def jain(self, hits: list[Hit], workers: list[str]) -> float:
        shares = [sum(1 for hit in hits if hit.served and hit.worker == worker) for worker in workers]
        squares = sum(share * share for share in shares)
        return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


Disturbance = Callable[[list[asyncio.subprocess.Process]], Awaitable[None]]


async def outcome(
    site: Site, shared: str, processes: int, seconds: float, *, tasks: int = 16, disturb: Disturbance | None = None
) -> Outcome:
    """`seconds` are counted once all of them have sent a request; `disturb` runs beside them then, and may kill."""
    running = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.fleet.worker", f"http://127.0.0.1:{site.port}/"),
            *("--shared", shared, "--name", str(number), "--tasks", str(tasks)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for number in range(processes)
    ]
    try:
        async with asyncio.timeout(60):
            await site.all_have_come(processes)
        began = asyncio.get_running_loop().time()
        disturbing = asyncio.create_task(disturb(running)) if disturb is not None else None
        await asyncio.sleep(seconds)
        said = [(await process.communicate(b""))[0] for process in running]  # it ends their standard input
        if disturbing is not None:
            await disturbing
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return Outcome(site.hits, began, sum(int(text) for text in said if text.strip()), processes)
