"""How near does a crawl job come to the least time it can take, and what does each URL cost?

    python -m benchmarks.crawl_job --quick     some minutes: 3,000 URLs over 200 hosts, the slowest needs 30 s
    python -m benchmarks.crawl_job             half an hour: 75,000 URLs over 1,000 hosts, the slowest needs 240 s
    python -m benchmarks.crawl_job --only known,learned,throughput,memory,mixed,peers

known, learned  time ÷ max(URLs of the slowest host ÷ its rate, all ÷ throughput), list grouped by host and shuffled;
                what the hosts refused by their own count; the learned limit against the hidden one
throughput      1,000 hosts without a limit: URLs a second and CPU a URL, all of CrawlJob, its queue on disk included;
                and what httpx2 costs by itself
memory          the most that the process held, by the number of URLs that it was given
mixed           hosts that fail, move, block and disallow: has each URL the one result that the farm meant for it?
peers           Scrapy with AutoThrottle and Crawlee with its ThrottlingRequestManager, a smaller job on such a farm

The hosts are in a process of their own (benchmarks/farm.py), and so is each crawl. Time is real: on a machine that
others use, the figures are theirs, too; its load is told first.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.decision import peers_environment
from benchmarks.farm import Farm, allow_files, farm
from benchmarks.farming import expected
from benchmarks.farming.histogram import counts, limited_hosts, optimum, paths, with_rates
from benchmarks.farming.plan import mixed_hosts, open_hosts

HERE = Path(__file__).parent / "farming"
LEARNED_FROM = 200
"""URLs of a host, from which what was learned is compared with its limit"""


@dataclass(frozen=True)
class Sizes:
    urls: int
    hosts: int
    seconds: float
    open_urls: int
    fed: Sequence[int]
    mixed_urls: int
    peers_urls: int
    peers_seconds: float
    orders: Sequence[str] = ("grouped", "shuffled")


FULL = Sizes(75_000, 1_000, 240.0, 50_000, (10_000, 100_000, 1_000_000), 6_000, 4_000, 60.0)
QUICK = Sizes(3_000, 200, 30.0, 5_000, (5_000, 20_000), 800, 800, 20.0)


@contextmanager
def url_file(urls: Sequence[str]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(urls) + "\n")
        file.flush()
        yield file.name


def crawl(urls: Sequence[str], **told: Any) -> dict[str, Any]:
    """What `farming/measured_crawl.py` measured."""
    with url_file(urls) as name:
        command = [sys.executable, "-m", "benchmarks.farming.measured_crawl"]
        line = json.dumps({"urls": name, "count": len(urls)} | told) + "\n"
        done = subprocess.run(command, input=line, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def orders(urls: Sequence[str], random: Random) -> Iterator[tuple[str, list[str]]]:
    """Smallest host first: the longest, which decides, comes last in a grouped list."""
    yield "grouped", list(reversed(urls))
    shuffled = list(urls)
    random.shuffle(shuffled)
    yield "shuffled", shuffled


def jobs(sizes: Sizes, seed: int, *, is_known: bool) -> None:
    random = Random(f"job/{seed}")
    urls_of = counts(sizes.urls, sizes.hosts, random)
    plans = limited_hosts(urls_of, sizes.seconds, random)
    rates = with_rates(plans)
    best = optimum(urls_of, list(rates.values()), float("inf"))
    kind = "known" if is_known else "learned"
    print(f"{kind} rates, {sizes.urls:,} URLs over {sizes.hosts:,} hosts; optimum {best:.0f} s")
    for order in sizes.orders:
        with farm(plans) as hosts:
            urls = [hosts.url(plan, path) for plan, count in zip(plans, urls_of, strict=True) for path in paths(count)]
            done = crawl(dict(orders(urls, random))[order], rates=rates if is_known else None, seed=seed)
            truth = hosts.truth()
        refused = sum(host["refused"] for host in truth.values())
        admitted = sum(host["admitted"] for host in truth.values())
        lost = sizes.urls - done["kinds"].get("200", 0)
        print(
            f"  {order:8}  {done['seconds']:6.1f} s = {done['seconds'] / best:.3f} × optimum"
            f"  90 % after {done['t90']:5.1f} s  refused {100 * refused / (refused + admitted):.2f} %"
            f"  without a page {lost}, twice {done['repeated']}  CPU {done['cpu']:.0f} s  {done['peak_mb']:.0f} MB",
            flush=True,
        )
        if not is_known:
            learned(urls_of, rates, done["limits"])


def learned(urls_of: Sequence[int], rates: dict[str, float], limits: dict[str, float]) -> None:
    """The limit that was learned against the hidden one, of hosts that were asked often enough to tell."""
    asked = [address for address, count in zip(rates, urls_of, strict=True) if count >= LEARNED_FROM]
    shares = sorted(limits[address] / rates[address] for address in asked if address in limits)
    if shares:
        within = sum(1 for share in shares if 0.9 <= share <= 1.1)
        print(
            f"            of {len(asked)} hosts with {LEARNED_FROM} URLs or more {len(shares)} were asked up to their"
            f" limit: learned ÷ hidden median {median(shares):.3f}, {shares[0]:.2f} to {shares[-1]:.2f},"
            f" within a tenth {within}"
        )


def throughput(sizes: Sizes, seed: int) -> None:
    count = sizes.open_urls
    print(f"1,000 hosts without a limit, {count:,} URLs, each host in turn:")
    for name, told in (
        ("CrawlJob, uvloop", {}),
        ("bare httpx2, uvloop", {"bare": True}),
        ("CrawlJob, asyncio", {"loop": "asyncio"}),
        ("bare httpx2, asyncio", {"bare": True, "loop": "asyncio"}),
    ):
        with farm(open_hosts(1000)) as hosts:
            urls = [hosts.url(plan, path) for path in paths(count // 1000) for plan in hosts.plans]
            done = crawl(urls, open=True, seed=seed, **told)
            pages = sum(host["pages"] for host in hosts.truth().values())
        print(
            f"  {name:20} {count / done['seconds']:6.0f} a second, {1e3 * done['cpu'] / count:.2f} ms of CPU a URL"
            f" = {count / done['cpu']:.0f} a second of CPU  lost {count - pages}  {done['peak_mb']:.0f} MB",
            flush=True,
        )


def memory(sizes: Sizes, seed: int) -> None:
    print("memory, 1,000 hosts without a limit, left after 2,000 results and when all are read:")
    for fed in sizes.fed:
        with farm(open_hosts(1000)) as hosts:
            urls = [hosts.url(plan, path) for path in paths(fed // 1000) for plan in hosts.plans]
            done = crawl(urls, open=True, stop_after=2_000, seed=seed)
        print(f"  {fed:>9,} URLs  {done['peak_mb']:5.0f} MB", flush=True)


def mixed(sizes: Sizes, seed: int) -> None:
    plans = mixed_hosts(100, seed)
    with farm(plans) as hosts:
        wrong, done = expected.check(hosts, sizes.mixed_urls, seed, crawl)
        truth = hosts.truth().values()
    refused, served = (sum(host[name] for host in truth) for name in ("refused", "admitted"))
    print(
        f"mixed hosts, {sizes.mixed_urls:,} URLs: {done['results']:,} results,"
        f" {done['repeated']} repeated, {wrong} not as meant"
        f"  refused {100 * refused / (refused + served):.2f} %  {done['seconds']:.0f} s  {done['kinds']}",
        flush=True,
    )


def peers(sizes: Sizes, seed: int) -> None:
    python = peers_environment.python_of("crawl_peers.txt", ".venv-crawlers")
    random = Random(f"peers/{seed}")
    urls_of = counts(sizes.peers_urls, 100, random)
    plans = limited_hosts(urls_of, sizes.peers_seconds, random)
    print(f"{sizes.peers_urls:,} URLs over 100 hosts, shuffled, rates unknown; optimum {sizes.peers_seconds:.0f} s")

    def ours(urls: Sequence[str]) -> float:
        return float(crawl(urls, seed=seed)["seconds"])

    def other(script: str) -> Callable[[Sequence[str]], float]:
        def run(urls: Sequence[str]) -> float:
            with url_file(urls) as name:
                command = [str(python), str(HERE / script), name]
                limit = 20 * sizes.peers_seconds
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=limit)
            return float(json.loads(done.stdout.splitlines()[-1])["seconds"])

        return run

    for name, run in (("ours", ours), ("Scrapy", other("scrapy_crawl.py")), ("Crawlee", other("crawlee_crawl.py"))):
        with farm(plans) as hosts:
            urls = [hosts.url(plan, path) for plan, count in zip(plans, urls_of, strict=True) for path in paths(count)]
            random.shuffle(urls)
            try:
                seconds = run(urls)
            except subprocess.TimeoutExpired:
                seconds = float("inf")
            _told(name, seconds, sizes, hosts)


def _told(name: str, seconds: float, sizes: Sizes, hosts: Farm) -> None:
    truth = hosts.truth().values()
    refused, served, pages = (sum(host[what] for host in truth) for what in ("refused", "admitted", "pages"))
    print(
        f"  {name:8} {seconds:6.1f} s  refused {100 * refused / (refused + served):5.2f} %"
        f"  lost {sizes.peers_urls - pages}",
        flush=True,
    )


PARTS: dict[str, Callable[[Sizes, int], None]] = {
    "known": lambda sizes, seed: jobs(sizes, seed, is_known=True),
    "learned": lambda sizes, seed: jobs(sizes, seed, is_known=False),
    "throughput": throughput,
    "memory": memory,
    "mixed": mixed,
    "peers": peers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="How near to the optimum is a crawl job?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="that the slowest host needs")
    parser.add_argument("--order", choices=["grouped", "shuffled"], help="one instead of both")
    given = parser.parse_args()
    unknown = set(given.only.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    sizes = QUICK if given.quick else FULL
    if given.seconds:
        sizes = replace(sizes, seconds=given.seconds)
    if given.order:
        sizes = replace(sizes, orders=(given.order,))
    allow_files()
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, seed {given.seed}", flush=True)
    for part in given.only.split(","):
        PARTS[part](sizes, given.seed)


if __name__ == "__main__":
    main()
