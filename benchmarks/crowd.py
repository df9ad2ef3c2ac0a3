"""Does the crowd of `throttle load` measure right, and what does it cost beside the site?

    python benchmarks/crowd.py                  a minute; checks against `hey` as well where it is on the PATH
    python benchmarks/crowd.py --hey /path/to/hey

A bare server, in a process of its own, answers 20 ms after each request and counts what it has seen. Told: whether it
saw what the crowd says it sent; the latencies that the crowd and hey measure at 500 requests a second; the CPU that
one request takes of the crowd's core, plan and report included; and how late it is at higher rates.
"""

import argparse
import asyncio
import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from throttle.load.mix import ROBOTS, Group, Mix
from throttle.load.report import percentile
from throttle.load.run import report_for, run, run_fast
from throttle.load.wire import LOOPBACK, Wire

ANSWER_AFTER = 0.02
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000
PLACES = dict.fromkeys(("pages", "feeds", "api", "dear"), ("/",))
RATES = (500, 1000, 2000, 4000)
SECONDS = 8.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hey", default=shutil.which("hey"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return run_fast(serve())
    for rate in RATES:
        with counting_server() as (port, seen):
            told(rate, port, seen)
    if given.hey:
        with counting_server() as (port, _):
            command = [given.hey, "-z", f"{SECONDS:g}s", "-c", "50", "-q", "10", f"http://{LOOPBACK}:{port}/"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            figures = re.findall(r"(50|95|99)% in ([\d.]+) secs", said)
            shown = ", ".join(f"p{share} {1000 * float(seconds):.1f} ms" for share, seconds in figures)
            print(f"  500/s by hey: {shown}")
    return None


def told(rate: int, port: int, seen: "Seen") -> None:
    mix = Mix("", (Group("bots", ROBOTS, rate=rate, addresses=2000),), SECONDS)
    report = report_for(mix)
    cpu = time.process_time()
    run_fast(run(mix, PLACES, Wire(port), report, seconds=SECONDS, seed=1))
    cpu = time.process_time() - cpu
    bots = report.tallies["bots"]
    shares = ((50, 0.5), (95, 0.95), (99, 0.99))
    shown = ", ".join(f"p{name} {1000 * (percentile(bots.latencies, share) or 0):.1f} ms" for name, share in shares)
    late = 1000 * (percentile(report.late, 0.99) or 0)
    is_right = "as the server saw" if seen.requests() == bots.offered == bots.served else f"not {seen.requests():,}"
    print(
        f"{rate:5,}/s: {bots.offered:,} sent and served, {is_right}; {shown}; crowd late "
        f"by {late:.0f} ms at p99; {1e6 * cpu / bots.offered:.0f} µs CPU"
    )


class Seen:
    """What the server has counted."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server

    def requests(self) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write("count\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


@contextlib.contextmanager
def counting_server() -> Iterator[tuple[int, Seen]]:
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline()), Seen(server)
        finally:
            server.kill()


class Counting(asyncio.Protocol):
    """Answers each request after a while."""

    requests = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"\r\n\r\n")):
            Counting.requests += 1
            asyncio.get_running_loop().call_later(ANSWER_AFTER, self.transport.write, ANSWER)  # type: ignore[attr-defined]


async def serve() -> None:
    """Until standard input ends; each line there is answered with the count."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Counting, LOOPBACK, 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(Counting.requests, flush=True)


if __name__ == "__main__":
    main()
