"""Whose robots.txt is known, who waits for one that is not, and what each allows. No I/O.

An errand is sent only where its origin's rules are known; until then it waits here, and holds no place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from throttle.crawl.errand import Errand, no_answer
from throttle.crawl.result import Problem, Result
from throttle.crawl.robots import ALL_ALLOWED, Memory, Rules, is_fresh

ORIGINS_MAX = 20_000


@dataclass(slots=True)
class Origin:
    memory: Memory | None = None
    rules: Rules | None = None
    waiting: list[Errand] = field(default_factory=list)


@dataclass(slots=True)
class Admitted:
    """What may be sent, what never will, how many wait, and which origins nobody has asked about yet."""

    ready: list[Errand] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    held: int = 0
    unknown: list[str] = field(default_factory=list)


class Origins:
    def __init__(self, agent: str, wall_clock: Callable[[], float], *, wait_max: float) -> None:
        self._agent = agent
        self._wall_clock = wall_clock
        self._wait_max = wait_max
        self._origins: dict[str, Origin] = {}

    @property
    def waiting(self) -> int:
        return sum(len(origin.waiting) for origin in self._origins.values())

    def admit(self, errands: Iterable[Errand], *, obeys: bool = True) -> Admitted:
        """`obeys` is False where robots.txt does not matter."""
        admitted = Admitted()
        for errand in errands:
            if errand.is_robots or not obeys:
                admitted.ready.append(errand)
                continue
            name = errand.target.origin
            origin = self._origins.get(name)
            if origin is not None and origin.rules is not None and not self._is_stale(origin):
                self._judge(errand, origin.rules, admitted)
                continue
            if origin is None or origin.rules is not None:
                memory = None if origin is None else origin.memory
                origin = self._origins[name] = Origin(memory)
                admitted.unknown.append(name)
            origin.waiting.append(errand)
            admitted.held += 1
        return admitted

    def _judge(self, errand: Errand, rules: Rules, admitted: Admitted) -> None:
        if rules.unreachable:
            admitted.results.append(no_answer(errand, Problem.ROBOTS_UNREACHABLE, rules.unreachable))
        elif not rules.is_allowed(errand.target.url):
            admitted.results.append(no_answer(errand, Problem.DISALLOWED, "robots.txt disallows it"))
        elif rules.interval > self._wait_max:
            detail = f"robots.txt asks for {rules.interval:g} s between two requests"
            admitted.results.append(no_answer(errand, Problem.RESTS, detail))
        else:
            admitted.ready.append(errand)

    def _is_stale(self, origin: Origin) -> bool:
        memory = origin.memory
        return memory is not None and not is_fresh(memory.read_at, memory.status, self._wall_clock())

    def remembered(self, name: str, memory: Memory | None) -> bool:
        """What an earlier run, or another process, has read; True if it is fresh enough to go by."""
        origin = self._origins[name]
        origin.memory = memory
        if memory is None or self._is_stale(origin):
            return False
        origin.rules = memory.rules(self._agent)
        return True

    def heard(self, name: str, status: int | None, text: bytes) -> Memory:
        """How asking for a robots.txt ended; what is to be remembered."""
        origin = self._origins[name]
        before = origin.memory or Memory(0.0, 0)
        origin.memory = before.heard(self._wall_clock(), status, text)
        origin.rules = origin.memory.rules(self._agent)
        return origin.memory

    def rules(self, name: str) -> Rules:
        origin = self._origins.get(name)
        return (origin.rules if origin is not None else None) or ALL_ALLOWED

    def take_waiting(self, name: str) -> list[Errand]:
        """Those who waited for an origin that is known now."""
        origin = self._origins.pop(name)
        waiting, origin.waiting = origin.waiting, []
        self._origins[name] = origin  # now the youngest
        if len(self._origins) > ORIGINS_MAX:
            for oldest, one in list(self._origins.items())[: ORIGINS_MAX // 10]:
                if not one.waiting and one.rules is not None:
                    del self._origins[oldest]
        return waiting
