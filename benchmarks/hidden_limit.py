"""Which client finds the limit of a host that tells nobody?

    python -m benchmarks.hidden_limit                    the fourteen situations, ours
    python -m benchmarks.hidden_limit --all              … and every other client
    python -m benchmarks.hidden_limit --others [--tuning]  the wider set: the half held out, or the half tuned on

Virtual time, 5 seeds, start-up counted, 64 tasks always wanting to send. A line: goodput of what the host would have
given / refused of what was sent, in percent, then what the situation is about.
"""

import argparse
import time
from collections.abc import Sequence
from random import Random
from statistics import mean, median

from benchmarks.simulator.baselines import (
    AimdBucket,
    AutoThrottle,
    BotocoreAdaptive,
    FirstDocument,
    Oracle,
    ThirdDocument,
)
from benchmarks.simulator.score import Contestant, Score, run
from benchmarks.simulator.situations import FOURTEEN, Situation, held_out, tuning
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.interval import IntervalPace
from throttle.client.pace.seeking import SeekingPace
from throttle.client.pace.table import TablePace


def seeking(situation: Situation, caller: int, random: Random) -> SeekingPace:
    return SeekingPace(random)


CONTESTANTS: dict[str, Contestant] = {
    "ours": seeking,
    "interval pace": lambda situation, caller, random: IntervalPace(random),
    "table pace": lambda situation, caller, random: TablePace(),
    "AIMD pace": lambda situation, caller, random: AimdPace(),
    "first document": lambda situation, caller, random: FirstDocument(random),
    "third document": lambda situation, caller, random: ThirdDocument(),
    "AutoThrottle": lambda situation, caller, random: AutoThrottle(random),
    "botocore adaptive": lambda situation, caller, random: BotocoreAdaptive(random),
    "aimd-bucket": lambda situation, caller, random: AimdBucket(),
    "oracle": lambda situation, caller, random: Oracle(situation, caller),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Which client finds a hidden limit?")
    parser.add_argument("--all", action="store_true", help="every client, not only ours")
    parser.add_argument("--only", help="clients whose name contains this")
    parser.add_argument("--others", action="store_true", help="the wider set, the half that was not tuned on")
    parser.add_argument("--tuning", action="store_true", help="the half that was tuned on")
    parser.add_argument("--situation", default="", help="situations whose name contains this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    arguments = parser.parse_args()
    situations = tuning() if arguments.tuning else held_out() if arguments.others else FOURTEEN
    situations = [situation for situation in situations if arguments.situation in situation.name]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for name, contestant in CONTESTANTS.items():
        if arguments.only is not None and arguments.only not in name:
            continue
        if arguments.only is None and not arguments.all and name != "ours":
            continue
        print(f"\n{name}")
        report(situations, contestant, seeds)


def report(situations: Sequence[Situation], contestant: Contestant, seeds: range) -> None:
    kept, started = 0, time.perf_counter()
    for situation in situations:
        scores = [run(situation, contestant, seed) for seed in seeds]
        whole = mean_score(scores)
        kept += whole.is_kept()
        print(f"  {'✓' if whole.is_kept() else ' '} {situation.name:24} {line(whole, scores)}   {situation.goal}")
    print(f"  kept {kept} of {len(situations)}  ({time.perf_counter() - started:.0f} s)", flush=True)


def mean_score(scores: Sequence[Score]) -> Score:
    def middle(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return median(known) if known else None

    return Score(
        mean(score.goodput for score in scores),
        mean(score.refused for score in scores),
        mean(score.p95 for score in scores),
        mean(score.jain for score in scores),
        middle([score.settle for score in scores]),
        middle([score.burst_time for score in scores]),
        middle([score.probes for score in scores]),
        middle([score.back for score in scores]),
    )


def line(whole: Score, scores: Sequence[Score]) -> str:
    worst = min(score.goodput for score in scores), max(score.refused for score in scores)
    parts = [
        f"{100 * whole.goodput:5.1f} / {100 * whole.refused:5.2f}",
        f"worst {100 * worst[0]:5.1f} / {100 * worst[1]:5.2f}",
        f"p95 {whole.p95:4.2f}×",
    ]
    if whole.jain < 0.9999:
        parts.append(f"Jain {whole.jain:.3f}")
    if whole.settle is not None:
        parts.append(f"settled {whole.settle:.1f} s")
    if whole.burst_time is not None:
        parts.append(f"bursts {whole.burst_time:.2f}×")
    if whole.probes is not None:
        parts.append(f"probes {whole.probes:.2f}/s, back {whole.back:.1f} s")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
