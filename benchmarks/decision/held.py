"""What is held: memory a caller, how many refused callers fit, and what happens beyond."""

import asyncio
import gc
import itertools
import json
import os
import resource
import subprocess
import sys
from typing import Any

from decision.added_cost import receive, send
from decision.subjects import HITS, OFF, PEERS, Clock, Subject, throttled_py
from decision.traffic import BROWSERS, scope
from throttle import Limits, MemoryStore
from throttle.server.agents import CallerClass
from throttle.server.policy import handle_request
from throttle.server.rule import Served

OTHERS = 12_000


def measured_for_memory() -> list[Subject]:
    """Slowapi's two middlewares share a store."""
    return [OFF, *(peer for peer in PEERS if "default middleware" not in peer.name)]


def resident() -> int:
    """Bytes of this process in memory (the most there ever were, where the system does not tell the present)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


async def bytes_a_caller(subject: Subject, callers: int) -> float:
    """Growth of this process's resident memory while so many callers come once each, all within one window."""
    clock = Clock()
    app = subject.make(clock)
    for number in range(1000):
        await app(scope(BROWSERS, number), receive, send)
    gc.collect()
    before = resident()
    for number in range(1000, 1000 + callers):
        clock.pass_by(1e-5)
        await app(scope(BROWSERS, number), receive, send)
    gc.collect()
    return (resident() - before) / callers


def bytes_a_caller_in_a_child(name: str, callers: int) -> float:
    """In a process of its own, so that no subject finds what another has left."""
    command = [sys.executable, sys.argv[0], "--memory-of", name, "--callers", str(callers)]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def child(name: str, callers: int) -> None:
    subject = next(each for each in measured_for_memory() if each.name == name)
    print(json.dumps(asyncio.run(bytes_a_caller(subject, callers))), flush=True)
    os._exit(0)  # some peers' threads would sweep on


async def is_still_refused(subject: Subject, others: int = OTHERS) -> bool:
    """Whether a caller who was refused is still refused after so many others, all within one window."""
    clock = Clock()
    app = subject.make(clock)
    answers: list[int] = []

    async def noted(message: Any) -> None:
        if "status" in message:
            answers.append(message["status"])

    for _ in range(HITS + 2):
        await app(scope(BROWSERS, 0), receive, noted)
    if answers[-1] == 200:
        raise RuntimeError(f"{subject.name}: was not refused")
    for number in range(1, 1 + others):
        clock.pass_by(1e-4)
        await app(scope(BROWSERS, number), receive, send)
    await app(scope(BROWSERS, 0), receive, noted)
    return answers[-1] != 200


ESCAPES: list[Subject] = [
    OFF,
    *measured_for_memory()[1:],
    Subject("throttled-py with its default store (1,024 keys)", lambda clock: throttled_py(clock, max_size=1024)),
]


class Crowd:
    """Callers at the store itself, a microsecond a hit; no app, no headers."""

    def __init__(self, store: MemoryStore, now: int) -> None:
        self._store, self._ticks = store, itertools.count(now)
        self._prepared = store.prepare(list(handle_request(CallerClass.BROWSER, Limits())), tells_quotas=False)

    def is_served(self, caller: object) -> bool:
        verdict = self._store.admit(self._prepared, (0, hash((caller, "agent")), 0), next(self._ticks), 0)
        if isinstance(verdict, Served):
            self._store.release()
            return True
        return False

    def hammers(self, callers: int) -> None:
        """Each until it is refused."""
        for caller in range(callers):
            for _ in range(HITS + 1):
                self.is_served(caller)


def still_refused(refused: int, others: int, *, max_callers: int) -> float:
    """The share of so many refused callers who are still refused after so many others came once."""
    crowd = Crowd(MemoryStore(max_callers=max_callers), 1_000_000_000_000)
    crowd.hammers(refused)
    for caller in range(others):
        crowd.is_served(("other", caller))
    return sum(not crowd.is_served(caller) for caller in range(refused)) / refused
