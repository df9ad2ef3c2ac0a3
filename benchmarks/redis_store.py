"""What does a decision cost whose counts are elsewhere? Beside the peers, on one private server, in the same run.

    python benchmarks/redis_store.py             about four minutes; makes .venv-peers for the peers first
    python benchmarks/redis_store.py --quick     about a minute, rougher
    python benchmarks/redis_store.py --json      for machines
    python benchmarks/redis_store.py --only decisions local --no-peers

So many tasks each ask, wait for the verdict and ask again, on uvloop; each caller asks about once. Decisions per second
and p99 are medians of rounds in which the subjects take turns. Exit code 1 when a bar is missed.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from decision import peers_environment

sys.path.insert(0, str(Path(__file__).resolve().parent))

WAITING = (1, 16, 64, 256)
QUESTIONS = ("decisions", "local", "memory")


class Report:
    """What was measured, and which bars were met."""

    def __init__(self) -> None:
        self.figures: dict[str, object] = {}
        self.is_met = True
        self.lines: list[str] = []

    def bar(self, what: str, is_met: bool, measured: str) -> None:
        self.is_met &= is_met
        self.lines.append(f"{'hit' if is_met else 'MISSED'}: {what}: {measured}")


async def decisions(given: argparse.Namespace, report: Report) -> None:
    """Decisions per second and p99, by subject and by how many wait; trips and CPU, counted by the server too."""
    from store import server, subjects

    who = subjects.SUBJECTS + ([] if given.no_peers else subjects.PEERS)
    rounds, seconds = (3, 0.5) if given.quick else (5, 1.0)
    measured: dict[tuple[str, int], list[Round]] = {}
    with server.running() as there:
        for _ in range(rounds):
            for waiting in WAITING:
                for subject in who:
                    async with subject.opened(there.url) as decide:
                        await _ask_on(decide, waiting, 0.3)  # connections are opened, scripts loaded
                        before = time.process_time(), there.seconds_of_cpu(), _script_calls(there.calls())
                        times = await _ask_on(decide, waiting, seconds)
                        after = time.process_time(), there.seconds_of_cpu(), _script_calls(there.calls())
                    spent = [(end - start) / len(times) for start, end in zip(before, after, strict=True)]
                    measured.setdefault((subject.name, waiting), []).append(
                        Round(len(times) / seconds, _p99(times), *spent)
                    )
                    there.client.flushdb()
        server_name = there.name
    median = {key: Round(*map(statistics.median, zip(*all_of, strict=True))) for key, all_of in measured.items()}
    _print_decisions(server_name, [subject.name for subject in who], median)
    report.figures["decisions"] = [
        {"subject": name, "waiting": waiting, **one._asdict()} for (name, waiting), one in median.items()
    ]
    mine, floor, bare, empty = (subject.name for subject in who[:4])
    trips = median[mine, 64].script_calls
    report.bar("one script call an ask, at 64 waiting", trips <= 1.01, f"{trips:.3f}")
    for name, least in ((bare, 2), *((peer.name, 3) for peer in subjects.PEERS[:1] if not given.no_peers)):
        times_as_many = median[mine, 64].rate / median[name, 64].rate
        report.bar(f"at 64 waiting ≥ {least} × {name}", times_as_many >= least, f"{times_as_many:.2f} ×")
    for waiting in WAITING:
        more, than_floor = (median[mine, waiting].p99 / median[name, waiting].p99 for name in (empty, floor))
        said = f"p99 at {waiting} waiting ≤ 1.3 × {empty}"
        report.bar(said, more <= 1.3, f"{more:.2f} × ({than_floor:.2f} × {floor})")


class Round(NamedTuple):
    """What one subject did in one turn."""

    rate: float
    """decisions per second"""
    p99: float
    """seconds"""
    client_cpu: float
    """seconds a decision"""
    server_cpu: float
    script_calls: float
    """a decision"""


async def _ask_on(decide: object, waiting: int, seconds: float) -> list[float]:
    """How long each decision took."""
    end = time.perf_counter() + seconds
    times: list[float] = []

    async def ask(task: int) -> None:
        caller = os.getpid() << 44 | task << 32 | (int(end * 1e3) & 0xFFFF) << 16
        while (began := time.perf_counter()) < end:
            caller += 1
            await decide(caller)  # type: ignore[operator]
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(ask(task) for task in range(waiting)))
    return times


def _script_calls(calls: dict[str, int]) -> int:
    return calls.get("evalsha", 0) + calls.get("eval", 0)


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def _print_decisions(server_name: str, names: list[str], median: dict[tuple[str, int], Round]) -> None:
    print(f"\nDecisions per second (p99 in ms), by how many wait; at 64 CPU a decision; {server_name}, loopback\n")
    head = [*(f"{waiting} waiting" for waiting in WAITING), "CPU µs, client / server", "script calls"]
    print("| subject | " + " | ".join(head) + " |")
    print("|---|" + "---:|" * len(head))
    for name in names:
        cells = [f"{median[name, waiting].rate:,.0f} ({median[name, waiting].p99 * 1000:.2f})" for waiting in WAITING]
        one = median[name, 64]
        cells += [f"{one.client_cpu * 1e6:.1f} / {one.server_cpu * 1e6:.1f}", f"{one.script_calls:.3f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def local(given: argparse.Namespace, report: Report) -> None:
    """`store="local"` at 1, 2 and 4 processes that ask at once, 64 tasks in each."""
    seconds = 1.0 if given.quick else 3.0
    print("\nstore='local', 64 waiting in each process: µs of a worker's time a decision\n")
    print("| processes | decisions per second in all | µs a decision |\n|---:|---:|---:|")
    figures = []
    for processes in (1, 2, 4):
        start = time.time() + 1.5
        words = [sys.executable, __file__, "--local-worker", str(start), str(seconds)]
        workers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        counts = [int(worker.communicate()[0]) for worker in workers]
        each = processes * seconds / sum(counts) * 1e6
        cost = seconds / sum(counts) * 1e6
        print(f"| {processes} | {sum(counts) / seconds:,.0f} | {cost:.1f} ({each:.1f} as one process sees it) |")
        figures.append({"processes": processes, "per_second": sum(counts) / seconds, "microseconds": cost})
        report.bar(f"store='local' at {processes} ≤ 60 µs a decision", cost <= 60, f"{cost:.1f} µs")
    report.figures["local"] = figures


async def local_worker(start: float, seconds: float) -> None:
    from store.subjects import PATIENCE, decider

    from throttle.server.stores.local import LocalStore

    store = LocalStore("benchmark", time_box=PATIENCE)
    assert await store.ready()
    await asyncio.sleep(max(0, start - time.time()))
    print(len(await _ask_on(decider(store), 64, seconds)))
    assert store.times_lost == 0
    store.close()
    await asyncio.sleep(0.01)


async def memory(given: argparse.Namespace, report: Report) -> None:
    """Bytes a caller on the server; and a flood of invented callers on a server that may hold so many MB."""
    from store import server, subjects

    callers, allowed = (20_000, 8) if given.quick else (100_000, 16)
    with server.running() as there:

        def used() -> int:
            about = there.client.info("memory")
            return int(about["used_memory"] - about["used_memory_startup"])

        async with subjects.ours(there.url) as decide:
            for number in range(callers):
                await decide(number)
            once = used() / callers
            with_one = used()
            for _ in range(9):
                for number in range(5_000):
                    await decide(number)
            ten = once + (used() - with_one) / 5_000
    print(f"\nBytes a caller on {there.name}: {once:.0f} with one hit, {ten:.0f} with ten ({callers:,} callers)")
    with server.running("--maxmemory", f"{allowed}mb", "--maxmemory-policy", "volatile-ttl") as there:
        async with subjects.ours(there.url) as decide:
            most = 0.0
            for number in range(callers * 2):
                await decide(number)
                if number % 10_000 == 0:
                    most = max(most, there.client.info("memory")["used_memory"] / 2**20)
    print(f"{callers * 2:,} invented callers on one that may hold {allowed} MB (volatile-ttl): at most {most:.1f} MB")
    report.figures["memory"] = {"once": once, "ten": ten, "flood_mb": most}
    report.bar(f"a flood stays within the server's {allowed} MB", most <= allowed * 1.05, f"{most:.1f} MB")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", action="store_true", help="results for machines")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; runs in this environment")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--local-worker", nargs=2, type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = options()
    if given.local_worker is None and not given.no_peers and not peers_environment.is_entered():
        peers_environment.enter()
    import uvloop  # only now: the environment holds it

    if given.local_worker is not None:
        return uvloop.run(local_worker(*given.local_worker))
    report = Report()
    for question in given.only or QUESTIONS:
        if question == "local":
            local(given, report)
        else:
            uvloop.run((decisions if question == "decisions" else memory)(given, report))
    print("\n" + "\n".join(report.lines))
    if given.json:
        print(json.dumps(report.figures))
    sys.exit(0 if report.is_met else 1)


if __name__ == "__main__":
    main()
