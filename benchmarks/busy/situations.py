"""The situations: what the site is, what it is asked for, and what befalls it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import pi, sin

from benchmarks.busy.site import Machine, Page, Site

Rate = Callable[[float], float]


@dataclass(frozen=True)
class Event:
    """Something befalls the site at a time."""

    at: float
    happens: Callable[[Site], None]


@dataclass(frozen=True)
class Situation:
    """`times`: what is offered, as a multiple of what the site can serve; a number, or a function of time."""

    name: str
    machine: Machine
    pages: Sequence[Page]
    capacity: float
    """requests a second that it can serve"""
    times: float | Rate
    bar: float
    """p95 of people under load, against the same people alone, that is to be kept"""
    is_held_out: bool = False
    is_labelled: bool = True
    people: float = 0.02
    """their share of the requests"""
    settle: float = 40.0
    """seconds before it is measured"""
    lasts: float = 80.0
    events: Sequence[Event] = ()
    is_calm: bool = False
    """nobody needs to be hindered"""

    @property
    def people_win(self) -> bool:
        """Even at half load not all can be served at once without hurting people: few processors, and pages alike."""
        return self.machine.cores <= 2 and len(self.pages) == 1

    def rate(self, now: float) -> float:
        times = self.times(now) if callable(self.times) else self.times
        return times * self.capacity


ONE_COST, MIXED = 1.5, 1.3


def _pages(*pages: tuple[str, float, float]) -> list[Page]:
    return [Page(name, seconds, share=share) for name, seconds, share in pages]


MIX = _pages(("cheap", 0.005, 0.7), ("usual", 0.1, 0.28), ("dear", 5.0, 0.02))
MILD_MIX = _pages(("cheap", 0.005, 0.5), ("usual", 0.05, 0.4), ("dear", 0.5, 0.1))


def work(pages: Sequence[Page]) -> float:
    """Seconds of processors that a request needs on average."""
    return sum(page.processors * page.share for page in pages) / sum(page.share for page in pages)


def plain(
    name: str, cores: int, pages: Sequence[Page], times: float | Rate, bar: float, *, settle: float = 40.0,
    lasts: float = 80.0, is_held_out: bool = False, is_labelled: bool = True, is_calm: bool = False,
    events: Sequence[Event] = (),
) -> Situation:  # fmt: skip
    """A site that needs nothing but processors."""
    capacity = cores / work(pages)
    return Situation(
        name, Machine(cores), pages, capacity, times, bar, is_held_out, is_labelled, settle=settle, lasts=lasts,
        is_calm=is_calm, events=events,
    )  # fmt: skip


def one(seconds: float, scatter: float = 0.0) -> list[Page]:
    return [Page("page", seconds, scatter=scatter)]


def with_database(
    name: str, cores: int, places: int, page: Page, times: float, bar: float, **more: object
) -> Situation:
    capacity = min(cores / page.processors, places / page.database)
    return Situation(name, Machine(cores, places), [page], capacity, times, bar, **more)  # type: ignore[arg-type]


def with_lock(name: str, page: Page, times: float, bar: float, **more: object) -> Situation:
    machine = Machine(4, has_interpreter_lock=True)
    return Situation(name, machine, [page], 1 / page.processors, times, bar, **more)  # type: ignore[arg-type]


def in_loop(name: str, cores: int, pages: Sequence[Page], times: float, bar: float, **more: object) -> Situation:
    """Handlers compute in the event loop, which uses one processor, however many there are."""
    machine = Machine(cores, computes_in_loop=True)
    return Situation(name, machine, pages, 1 / work(pages), times, bar, **more)  # type: ignore[arg-type]


def with_threads(name: str, page: Page, times: float, bar: float, **more: object) -> Situation:
    """Handlers wait in one of forty threads, and need little else."""
    capacity = 40 / (page.processors + page.wait)
    return Situation(name, Machine(4, threads=40), [page], capacity, times, bar, **more)  # type: ignore[arg-type]


def step(at: float, *, work: float = 1.0, database: float = 1.0, cores: float | None = None) -> Event:
    def happens(site: Site) -> None:
        site.slower *= work
        site.database_slower *= database
        if cores is not None:
            site.processors.become(cores)

    return Event(at, happens)


def day(now: float) -> float:
    """From a third of what it can serve to eight times that, and back, in five minutes."""
    return 0.3 + 7.7 * max(0.0, sin(2 * pi * now / 300)) ** 2


def held_out(situation: Situation) -> Situation:
    return replace(situation, is_held_out=True)


def burst(at: float, times: float, before: float = 0.3) -> Rate:
    return lambda now: times if now >= at else before


def situations() -> list[Situation]:
    """All of them; half are held out from tuning."""
    found = [
        # One cost, on 1 to 64 processors.
        plain("1 core, 20 ms, 10 times", 1, one(0.02), 10, ONE_COST),
        plain("2 cores, 5 ms, 2 times", 2, one(0.005), 2, ONE_COST),
        plain("2 cores, 79 ms, 8 times", 2, one(0.079), 8, ONE_COST, settle=60, lasts=200),
        plain("4 cores, 40 ms, 10 times", 4, one(0.04), 10, ONE_COST),
        plain("4 cores, 40 ms, 20 times", 4, one(0.04), 20, 1.6, is_held_out=True),
        plain("8 cores, 100 ms, 5 times", 8, one(0.1), 5, ONE_COST, lasts=160, is_held_out=True),
        plain("16 cores, 100 ms, 5 times", 16, one(0.1), 5, ONE_COST, lasts=100),
        plain("64 cores, 250 ms, 4 times", 64, one(0.25), 4, ONE_COST, lasts=60, is_held_out=True),
        held_out(plain("2 cores, 5 s, 5 times (1 or 2 a second)", 2, one(5.0), 5, ONE_COST, settle=600, lasts=6000)),
        # Mixed costs.
        plain("2 cores, 5 ms to 5 s, 10 times", 2, MIX, 10, ONE_COST, settle=120, lasts=400),
        plain("4 cores, 5 ms to 5 s, 10 times", 4, MIX, 10, MIXED, settle=120, lasts=200, is_held_out=True),
        plain("16 cores, 5 ms to 5 s, 5 times", 16, MIX, 5, MIXED, settle=60, lasts=60),
        plain("4 cores, 5 to 500 ms, 10 times", 4, MILD_MIX, 10, MIXED, lasts=120),
        held_out(
            plain("4 cores, 5 to 500 ms, one route, 10 times", 4, MILD_MIX, 10, MIXED, lasts=120, is_labelled=False)
        ),
        plain("4 cores, 5 ms to 5 s, one route, 10 times", 4, MIX, 10, MIXED, settle=120, lasts=200, is_labelled=False),
        plain("4 cores, 50 ms scattered, 10 times", 4, one(0.05, 0.8), 10, MIXED),
        plain("8 cores, 50 ms scattered widely, 5 times", 8, one(0.05, 1.4), 5, MIXED, is_held_out=True),
        # A database, an interpreter lock.
        with_database("database of 5 places, 4 cores, 5 times", 4, 5, Page("p", 0.005, 0.05), 5, ONE_COST),
        held_out(with_database("database of 20 places, 4 cores, 5 times", 4, 20, Page("p", 0.005, 0.1), 5, ONE_COST)),
        with_database("database and processors alike, 5 times", 8, 16, Page("p", 0.05, 0.1, scatter=0.5), 5, MIXED),
        with_lock("interpreter lock, 20 ms and 80 ms of waiting, 5 times", Page("p", 0.02, wait=0.08), 5, ONE_COST),
        held_out(
            with_lock(
                "interpreter lock, 10 ms and 150 ms of waiting, 5 times",
                Page("p", 0.01, wait=0.15, scatter=0.3),
                5,
                ONE_COST,
            )
        ),
        # Something befalls it.
        plain("cost ×4, 4 cores, 5 times and 20", 4, one(0.02), 5, ONE_COST, lasts=100, events=[step(70, work=4)]),
        held_out(
            plain(
                "cost ÷4, 4 cores, 20 times and 5", 4, one(0.08), 20, ONE_COST, lasts=100, events=[step(70, work=0.25)]
            )
        ),
        plain(
            "processors halved, 8 cores, 4 times and 8",
            8,
            one(0.05),
            4,
            ONE_COST,
            lasts=100,
            events=[step(70, cores=4)],
        ),
        held_out(
            plain(
                "processors doubled, 4 cores, 8 times and 4",
                4,
                one(0.05),
                8,
                ONE_COST,
                lasts=100,
                events=[step(70, cores=8)],
            )
        ),
        with_database(
            "database ×5 slower, 4 cores",
            4,
            20,
            Page("p", 0.005, 0.05),
            4,
            ONE_COST,
            lasts=100,
            events=(step(70, database=5),),
        ),
        plain("a day, 4 cores, mixed", 4, MILD_MIX, day, MIXED, settle=0, lasts=300),
        plain("a day, 8 cores, 40 ms", 8, one(0.04), day, ONE_COST, settle=0, lasts=300, is_held_out=True),
        plain(
            "onset, 4 cores, 40 ms, 10 times from the 30th second",
            4,
            one(0.04),
            burst(30, 10),
            ONE_COST,
            settle=30,
            lasts=30,
        ),
        held_out(
            plain(
                "onset, 4 cores, mixed, 10 times from the 30th second",
                4,
                MILD_MIX,
                burst(30, 10),
                ONE_COST,
                settle=30,
                lasts=30,
            )
        ),
        held_out(
            plain(
                "a long storm, 2 cores, 100 ms scattered, 5 times, half an hour",
                2,
                one(0.1, 0.5),
                5,
                MIXED,
                settle=60,
                lasts=1740,
            )
        ),
    ]
    # Half of what it can serve.
    for cores, seconds in ((1, 0.02), (2, 0.005), (2, 0.079), (4, 0.04), (16, 0.1), (64, 0.25)):
        name = f"half load, {cores} core{'s' if cores > 1 else ''}, {seconds * 1000:g} ms"
        found.append(
            plain(name, cores, one(seconds), 0.5, ONE_COST, is_calm=True, lasts=160, is_held_out=cores in (2, 16))
        )
    found.append(plain("half load, 4 cores, 5 to 500 ms", 4, MILD_MIX, 0.5, MIXED, is_calm=True, lasts=200))
    found.append(
        plain("half load, 8 cores, 5 ms to 5 s", 8, MIX, 0.5, MIXED, is_calm=True, lasts=300, is_held_out=True)
    )
    found.append(
        with_database("half load, database of 20 places", 4, 20, Page("p", 0.005, 0.1), 0.5, ONE_COST, is_calm=True)
    )
    # Not among the 41 that were there first: handlers in the event loop, and forty threads.
    found += [
        in_loop("event loop, 5 ms, 10 times", 4, one(0.005), 10, ONE_COST),
        in_loop("event loop, 20 ms, 20 times", 2, one(0.02), 20, ONE_COST, lasts=160, is_held_out=True),
        in_loop("event loop, 5 to 500 ms, 10 times", 4, MILD_MIX, 10, MIXED, settle=60, lasts=240),
        in_loop("event loop, 5 ms and 100 ms of waiting, 5 times", 4, [Page("p", 0.005, wait=0.1)], 5, ONE_COST),
        in_loop("half load, event loop, 20 ms", 4, one(0.02), 0.5, ONE_COST, is_calm=True, lasts=160),
        with_threads("40 threads, 5 ms and 1 s of waiting, 5 times", Page("p", 0.005, wait=1.0), 5, ONE_COST),
        with_threads(
            "40 threads, 5 ms and 0.1 s scattered, 5 times", Page("p", 0.005, wait=0.1, scatter=0.8), 5, MIXED
        ),
    ]
    return found
