"""Do several processes that share a pace keep to one host's hidden limit, evenly, and what becomes of it in trouble?

    python -m benchmarks.shared_pace --simulated     virtual time on a real ledger, seeded: 1, 2, 4 and 10 workers
    python -m benchmarks.shared_pace --real          real processes and server: as many; one killed; server killed
    python -m benchmarks.shared_pace --window        the third document's sliding window as printed, and ours

Without a choice, all three. Each starts a Valkey or Redis of its own. Goodput of what the host would have given /
refused of what was sent, in percent; Jain's index over what each worker was served; calls to the ledger a request.
"""

import argparse
import asyncio
import secrets
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from random import Random
from statistics import mean, median

import redis

from benchmarks.fleet.run import Disturbance, Outcome, outcome
from benchmarks.fleet.site import Hit, Site
from benchmarks.simulator.clients import Client, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.fleet import Ledger, worker
from benchmarks.simulator.score import Score, run, score
from benchmarks.simulator.situations import FOURTEEN, Situation
from benchmarks.store.server import Server, running
from throttle.client.pace.seeking import SeekingPace
from throttle.client.sliding_window import SlidingWindow

SITUATIONS = (
    "8/s, 429 told",
    "8/s, bare 503",
    "480 a minute, fields",
    "100/s",
    "0.5/s",
    "8→2/s",
    "outage 60 s",
    "knee",
    "slots",
)
COUNTS = (1, 2, 4, 10)


# -- simulated


def simulated(server: Server, seeds: range, wanted: str) -> None:
    print("\nSimulated: goodput / refused, Jain, calls a request")
    for situation in FOURTEEN:
        if not situation.name.startswith(SITUATIONS) or wanted not in situation.name:
            continue
        alone = [run(situation, lambda situation, caller, random: SeekingPace(random), seed) for seed in seeds]
        print(f"  {situation.name:24} one, unshared      {_figures(alone)}")
        for count in COUNTS:
            made = [fleet_score(server, situation, count, seed) for seed in seeds]
            calls = mean(calls for _, calls in made)
            print(
                f"  {'':24} {count:2} sharing         {_figures([found for found, _ in made])}  {calls:.3f}", flush=True
            )


def fleet_score(server: Server, situation: Situation, count: int, seed: int) -> tuple[Score, float]:
    random = Random(f"{situation.name}/{count}/{seed}")
    clockwork = Clockwork()
    site = situation.site(clockwork, Random(random.random()))
    ledger = Ledger(clockwork, server.client, secrets.token_hex(6))
    clients: list[Client] = [
        worker(clockwork, site, ledger, number, lambda: SeekingPace(random), random, Work(), 0.01 * number)
        for number in range(count)
    ]
    clockwork.run(situation.seconds)
    sent = sum(len(client.log.sent) for client in clients)
    return score(situation, clients), ledger.calls / max(1, sent)


def _figures(scores: list[Score]) -> str:
    goodput, refused = mean(one.goodput for one in scores), mean(one.refused for one in scores)
    jain = min(one.jain for one in scores)
    return (
        f"{100 * goodput:5.1f} / {100 * refused:4.2f}  Jain ≥ {jain:.4f}  p95 {median(one.p95 for one in scores):.2f}×"
    )


# -- real


async def real(seconds: float, rate: float) -> None:
    print(f"\nReal processes, a hidden {rate:g}/s, {seconds:g} s; rates and Jain of the second half")
    for count in COUNTS:
        with running() as server:
            async with Site(rate, rate) as site:
                done = await outcome(site, server.url, count, seconds)
        print(
            f"  {count:2} processes             {_real_line(done, done.between(seconds / 2, seconds), count, rate)}",
            flush=True,
        )
    with running() as server:
        async with Site(rate, rate) as site:
            done = await outcome(site, server.url, 4, seconds, disturb=_kill(2, seconds / 2))
    later = done.between(seconds / 2 + 1, seconds)
    print(f"   4, one killed          {_real_line(done, later, 4, rate, gone='2')}", flush=True)
    with running() as server:
        async with Site(rate, rate) as site:
            client = server.client

            async def stop(_: object) -> None:
                await asyncio.sleep(seconds / 2)
                client.shutdown(nosave=True)

            done = await outcome(site, server.url, 4, seconds, disturb=stop)
    later = done.between(seconds / 2 + 1, seconds)
    print(f"   4, the server killed   {_real_line(done, later, 4, rate)}", flush=True)


def _kill(number: int, after: float) -> Disturbance:
    async def kill(processes: list[asyncio.subprocess.Process]) -> None:
        await asyncio.sleep(after)
        processes[number].kill()

    return kill


def _real_line(done: Outcome, hits: list[Hit], count: int, rate: float, gone: str = "") -> str:
    seconds = max(hit.at for hit in hits) - min(hit.at for hit in hits)
    served = sum(hit.served for hit in hits)
    refused = sum(not hit.served for hit in done.hits)
    workers = [str(number) for number in range(count) if str(number) != gone]
    times = sorted(hit.at for hit in done.hits)
    most = max(bisect_left(times, at + 1) - first for first, at in enumerate(times))
    sent = len(done.hits)
    return (
        f"{served / seconds:6.1f}/s = {100 * served / seconds / rate:5.1f} %  refused {100 * refused / sent:4.2f} %"
        f"  Jain {done.jain(hits, workers):.4f}  calls {done.calls / sent:.3f}  most in 1 s {most}"
    )


# -- the sliding window


def can_fire(server: "redis.Redis", domain: str, rate_per_sec: int) -> bool:
    """The third document's code as printed."""
    key = f"throttle:{domain}"
    now_ms = int(time.time() * 1000)
    window_start = now_ms - 1000  # last 1 second
    pipe = server.pipeline()
    pipe.zremrangebyscore(key, 0, window_start)  # drop old hits
    pipe.zcard(key)  # count current hits
    pipe.zadd(key, {str(now_ms): now_ms})  # tentatively add ours
    pipe.expire(key, 5)  # auto-cleanup
    _, current_count, _, _ = pipe.execute()
    if current_count >= rate_per_sec:
        # roll back the speculative add and signal "wait"
        server.zrem(key, str(now_ms))
        return False
    return True


def window(server: Server, seconds: float = 5.0, workers: int = 10, at_most: int = 10) -> None:
    print(
        f"\nSliding window: {at_most} a second, {workers} workers that always ask, {seconds:g} s: granted, worst second"
    )
    ours = SlidingWindow(server.client, at_most, 1.0)
    ways: dict[str, Callable[[str], bool]] = {
        "as printed": lambda domain: can_fire(server.client, domain, at_most),
        "ours": lambda domain: ours.ask(domain) == 0.0,
    }
    for busy in (0.0, 0.1):
        for name, ask in ways.items():
            found = [_granted(ask, seconds, workers, busy) for _ in range(3)]
            counts = sorted(len(times) for times in found)
            worst = max(sum(1 for at in times if start <= at < start + 1) for times in found for start in times)
            print(
                f"  {name:12} request of {busy * 1000:3.0f} ms: granted {counts}, most in a second {worst}", flush=True
            )


def _granted(ask: Callable[[str], bool], seconds: float, workers: int, busy: float) -> list[float]:
    domain, times, end = secrets.token_hex(8), list[float](), time.monotonic() + seconds

    def work() -> None:
        while time.monotonic() < end:
            if ask(domain):
                times.append(time.monotonic())
                time.sleep(busy)
            else:
                time.sleep(0.05)  # as its worker loop does

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="Several processes, one pace.")
    for name in ("simulated", "real", "window"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--situation", default="", help="simulated ones whose name contains this")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each real run")
    parser.add_argument("--rate", type=float, default=100.0, help="of the real site")
    arguments = parser.parse_args()
    everything = not (arguments.simulated or arguments.real or arguments.window)
    with running() as server:
        print(server.name)
        if everything or arguments.window:
            window(server)
        if everything or arguments.simulated:
            simulated(server, range(1, 1 + arguments.seeds), arguments.situation)
    if everything or arguments.real:
        asyncio.run(real(arguments.seconds, arguments.rate))


if __name__ == "__main__":
    main()
