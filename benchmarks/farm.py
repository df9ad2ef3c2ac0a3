"""A thousand hosts on loopback in one process, each with its own hidden limit and manners; the farm keeps the truth.

    python -m benchmarks.farm [--hosts 1000] [--seed 1] [--open]

A host is reached at an address of its own (http://127.0.1.0:PORT/), or as http://host0.test/ by a client that takes
http://127.0.1.0:PORT for its proxy; by either name it is chosen by the Host field. /_farm/stats, on any host, tells
of each what it admitted and refused, and its worst second. The limits are the simulation's (benchmarks/simulator).
It stands until its standard input ends.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.request import ProxyHandler, build_opener

from benchmarks.farming.plan import HostPlan, from_json, mixed_hosts, open_hosts, to_json
from benchmarks.farming.server import STATS, Connection
from benchmarks.farming.site import Site


def allow_files() -> None:
    """As many sockets as the machine lets a process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(plans: Sequence[HostPlan]) -> None:
    loop = asyncio.get_running_loop()
    sites: dict[bytes, Site] = {}
    connection = partial(Connection, sites)
    first, *others = [plan.address for plan in plans]
    server = await loop.create_server(connection, first, 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    for plan, following in zip(plans, [*others, first], strict=True):
        site = Site(plan, following, port)
        sites[plan.address.encode()] = site
        if plan.name:
            sites[plan.name.encode()] = site
    servers = [server, *[await loop.create_server(connection, other, port, backlog=1024) for other in others]]
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for one in servers:
        one.close()


@dataclass(frozen=True)
class Farm:
    plans: Sequence[HostPlan]
    port: int

    def url(self, plan: HostPlan, path: str = "/") -> str:
        return f"http://{plan.address}:{self.port}{path}"

    @property
    def urls(self) -> list[str]:
        return [self.url(plan) for plan in self.plans]

    def truth(self) -> dict[str, dict[str, Any]]:
        """By address."""
        with build_opener(ProxyHandler({})).open(self.url(self.plans[0], STATS)) as answer:
            return {host["address"]: host for host in json.load(answer)}


@contextlib.contextmanager
def farm(plans: Sequence[HostPlan]) -> Iterator[Farm]:
    """The hosts of these plans, while they stand, in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.farm", "--plans"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(to_json(plans) + "\n")
        process.stdin.flush()
        port = int(process.stdout.readline())
        try:
            yield Farm(plans, port)
        finally:
            process.communicate("")


def main() -> None:
    parser = argparse.ArgumentParser(description="A thousand hosts with hidden limits, on loopback.")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--open", action="store_true", help="none has a limit, all answer at once")
    parser.add_argument("--plans", action="store_true", help="plans come as a line of JSON on standard input")
    given = parser.parse_args()
    allow_files()
    if given.plans:
        plans = from_json(sys.stdin.readline())
    else:
        plans = open_hosts(given.hosts) if given.open else mixed_hosts(given.hosts, given.seed)
    with contextlib.suppress(KeyboardInterrupt), _runner() as runner:
        runner.run(serve(plans))


def _runner() -> asyncio.Runner:
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


if __name__ == "__main__":
    main()
