"""How well, how fast and at what cost are agents classified?

    python benchmarks/agents.py [--rows FILE] [--part held-out|tuning|all] [--no-peers]

Rows are lines of JSON with `ua` (a header's bytes, decoded as latin-1), `label` (browser, crawler, bot), `family` and
`source`. A hash of the family parts them: on three fifths the rules were tuned, the held-out two fifths stayed unseen.
Each subject judges each agent uncached, some passes long; an agent's cost is its quickest, which leaves out what else
the machine does. The peers run in the same process, in an environment of their own, made at the first run. Exit code 1
when a bar is missed.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent_subjects import ROOT, Judge, Subject, available, ours
from decision.peers_environment import enter, is_entered
from resident import resident

ROWS = ROOT.parent / "shared" / "data" / "user_agents_dev.jsonl"
LABELS = ("browser", "crawler", "bot")
BARS = {"browser": 99.7, "crawler": 94.0, "bot": 97.0}
SINCE = "2026/01/01"
"""robots first listed on or after this day are judged with a table made without them"""
KIB_64 = 65_536


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--part", choices=["held-out", "tuning", "all"], default="held-out")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    if not options.no_peers and not is_entered():
        enter()
    subjects, missing = available()
    if options.no_peers:
        subjects = subjects[:2]
    else:
        for name in missing:
            print(f"{name} is not installed here and is left out")
    rows = read_rows(options.rows, options.part)
    if rows:
        print_accuracy(subjects, rows, options.part)
        print_speed(subjects, rows)
    else:
        print(f"{options.rows} is not there: no accuracy, and no cost on real agents (--rows names another file)\n")
    print_hostile(subjects)
    print_start(subjects)
    print_cached()
    if not options.no_peers:
        print_new_robots()
    sys.exit(1 if missed else 0)


def read_rows(path: Path, part: str) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row | {"raw": bytes_of(row["ua"])} for row in rows if part in ("all", part_of(row["family"]))]


def bytes_of(agent: str) -> bytes:
    try:
        return agent.encode("latin-1")
    except UnicodeEncodeError:  # a few rows came to their collection as text
        return agent.encode("utf-8", "surrogatepass")


def part_of(family: str) -> str:
    digest = hashlib.blake2b(family.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return "tuning" if int.from_bytes(digest, "big") % 5 < 3 else "held-out"


def print_accuracy(subjects: list[Subject], rows: list[dict[str, Any]], part: str) -> None:
    counts = Counter(row["label"] for row in rows)
    print(f"{part} agents: " + ", ".join(f"{counts[label]} {label}" for label in LABELS) + "\n")
    print("right, %                          browser  crawler      bot     mean   mean of rows in other lists only")
    matrices = []
    for subject in subjects:
        judge = subject.make()
        verdicts = [(row["label"], judge(row["raw"]), "monperrus" in row["source"]) for row in rows]
        matrix = Counter((label, verdict) for label, verdict, _ in verdicts)
        others = Counter((label, verdict) for label, verdict, is_in_the_list in verdicts if not is_in_the_list)
        right = shares(matrix)
        print(f"{subject.name:32}" + "".join(f"{right[label]:9.2f}" for label in LABELS), end="")
        print(f"{statistics.mean(right.values()):9.2f}{statistics.mean(shares(others).values()):9.2f}")
        matrices.append((subject.name, matrix, right))
    print("\nrows: truth; columns: verdicts             browser  crawler      bot")
    for name, matrix, _ in matrices:
        for label in LABELS:
            numbers = "".join(f"{matrix[label, verdict]:9d}" for verdict in LABELS)
            print(f"{name if label == 'browser' else '':32}{label:8}{numbers}")
    print()
    for label, bar in BARS.items():
        tell(f"{label} right: {matrices[0][2][label]:.2f} %, the bar is {bar} %", matrices[0][2][label] >= bar)
    print()


def shares(matrix: Counter[tuple[str, str]]) -> dict[str, float]:
    totals = {label: sum(matrix[label, verdict] for verdict in LABELS) for label in LABELS}
    return {label: 100 * matrix[label, label] / (totals[label] or 1) for label in LABELS}


missed: list[str] = []


def tell(what: str, is_met: bool) -> None:
    if not is_met:
        missed.append(what)
    print(f"  {'met   ' if is_met else 'MISSED'} {what}")


def print_speed(subjects: list[Subject], rows: list[dict[str, Any]]) -> None:
    agents = list(dict.fromkeys(row["raw"] for row in rows))
    print("microseconds a call, uncached       median     mean      p99  slowest")
    costs = {}
    for subject in subjects:
        quickest = sorted(quickest_of(subject.make(), agents, subject.passes))
        median, p99 = statistics.median(quickest), quickest[int(0.99 * len(quickest))]
        print(f"{subject.name:32}{median:10.1f}{statistics.mean(quickest):9.1f}{p99:9.1f}{quickest[-1]:9.1f}")
        costs[subject.name] = (median, p99)
    median, p99 = costs["throttle"]
    tell(f"median {median:.1f}, the bar is 8; p99 {p99:.1f}, the bar is 100", median <= 8 and p99 <= 100)
    print()


def quickest_of(judge: Judge, agents: list[bytes], passes: int) -> list[float]:
    quickest = [float("inf")] * len(agents)
    for _ in range(passes):
        for number, agent in enumerate(agents):
            begun = time.perf_counter_ns()
            judge(agent)
            quickest[number] = min(quickest[number], (time.perf_counter_ns() - begun) / 1000)
    return quickest


def print_hostile(subjects: list[Subject]) -> None:
    print("milliseconds for the worst of the hostile strings of 64 KiB (given up after a second)")
    for subject in subjects:
        worst, tried = worst_of(subject.make())
        print(f"{subject.name:32}{worst:10.3f}   of {tried} tried")
        if subject.name == "throttle":
            tell(f"{worst:.3f} ms, the bar is 1", worst < 1)
    print()


def worst_of(judge: Judge) -> tuple[float, int]:
    """One call a string, since some subjects remember the last agents, so in CPU time."""
    worst, tried = 0.0, 0
    for probe in hostile():
        begun = time.thread_time_ns()
        judge(probe)
        worst, tried = max(worst, (time.thread_time_ns() - begun) / 1e6), tried + 1
        if worst > 1000:
            break
    return worst, tried


def hostile() -> Iterable[bytes]:
    """Strings that make a pattern with nested repeats, or an uncut one, slow."""
    browser = b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0"
    for piece in (b";", b"(", b")", b"()", b" ", b"a", b"a.", b"-", b"\0", b"\xff", b"1.", b"/", b"bot", b"cubot "):
        for start in (b"", b"Mozilla/5.0 ", b"Mozilla/5.0 (", browser + b" ", b"Mozilla/5.0 (compatible; "):
            yield (start + piece * KIB_64)[:KIB_64]
    for piece in (b" Chrome/1.2", b"; en-US", b" a.com", b"like gecko, ", b"google-", b" Linux; Android 10; "):
        yield (browser + piece * KIB_64)[: KIB_64 - 1] + b"!"


def print_start(subjects: list[Subject]) -> None:
    print("start to the first verdict          CPU ms      MiB   (less an empty program's)")
    empty = spent("pass")
    for subject in subjects:
        cpu, memory = (mine - base for mine, base in zip(spent(subject.start), empty, strict=True))
        print(f"{subject.name:32}{cpu:10.1f}{memory:9.1f}")
        if subject.name == "throttle":
            tell(f"{cpu:.1f} ms, the bar is 25", cpu <= 25)
    print()


def spent(program: str, runs: int = 15) -> tuple[float, float]:
    """CPU milliseconds, the least of the runs, and resident MiB, their median, of a fresh interpreter and a program."""
    tell_both = (
        f"\nimport resource, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "me = resource.getrusage(resource.RUSAGE_SELF); cpu = (me.ru_utime + me.ru_stime) * 1000\n"
        "from resident import resident\nprint(cpu, resident())"
    )
    results = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", program + tell_both], capture_output=True, text=True, check=True)
        results.append([float(number) for number in done.stdout.split()[-2:]])
    return min(cpu for cpu, _ in results), statistics.median(memory for _, memory in results)


def print_cached() -> None:
    from throttle.server.agents import Classifier

    classify = Classifier().classify
    agent = (
        b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/5"
    )
    heads = [agent + b"%d." % number for number in range(1000)]
    quickest = float("inf")
    for _ in range(50):
        fresh = [head + b"6" for head in heads]  # a server's bytes are new ones each time, so their hash is not known
        begun = time.perf_counter_ns()
        for raw in fresh:
            classify(raw)
        quickest = min(quickest, (time.perf_counter_ns() - begun) / 1000 / len(fresh))
    print(f"microseconds a call, cached{quickest:18.2f}")
    tell(f"{quickest:.2f}, the bar is 0.3", quickest <= 0.3)
    flood = Classifier()
    before = resident()
    for number in range(300_000):
        flood.classify(b"%d " % number + agent * 5)
    print(f"MiB more after 300,000 invented agents of 512 bytes: {resident() - before:.1f}\n")


def print_new_robots() -> None:
    """The robots that the list first had in SINCE's year, by its tags, with a table that knows none of them."""
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA

    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table.txt"
        tool = ROOT / "tools" / "agent_table.py"
        subprocess.run(
            [sys.executable, str(tool), "--before", SINCE, "--out", str(table)], check=True, capture_output=True
        )
        judge = ours(str(table))
    matrix: Counter[tuple[str, str]] = Counter()
    for entry in CRAWLER_USER_AGENTS_DATA:
        if entry.get("addition_date", "") >= SINCE and entry.get("instances"):
            matrix[label_of(set(entry["tags"])), judge(entry["instances"][0].encode("utf-8"))] += 1
    print(f"robots first listed since {SINCE}, judged without them in the table    browser  crawler      bot")
    for label in ("crawler", "bot", "either"):
        print(f"{label:68}" + "".join(f"{matrix[label, verdict]:9d}" for verdict in LABELS))
    print("(classes by the list's tags, many made by machine; either: scanners, browser automation, two classes)")


def label_of(tags: set[str]) -> str:
    bots = {"monitoring", "feed-reader", "http-library"}
    either = {"scanner", "browser-automation"}
    if tags <= bots:
        return "bot"
    return "either" if tags & (bots | either) else "crawler"


if __name__ == "__main__":
    main()
