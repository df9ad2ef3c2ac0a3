"""Sends errands as the frontier lets them go, and takes each where its answer leads, until it has a result.

Redirects and retries go back to the frontier, under the host they lead to: no task waits for a host.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from throttle.client.exchange import HostRests
from throttle.client.host import Host, Place
from throttle.client.token_bucket import TokenBucket
from throttle.crawl.at_most import interval_of, slow_down
from throttle.crawl.errand import ROBOTS_ID, Errand, Fetched, Hop, TryAgain, no_answer, outcome
from throttle.crawl.fetch import Fetcher
from throttle.crawl.frontier import Frontier, Turn
from throttle.crawl.links import links
from throttle.crawl.options import CrawlOptions
from throttle.crawl.origins import Origins
from throttle.crawl.page import Page
from throttle.crawl.queue import RobotsText
from throttle.crawl.result import Problem, Result
from throttle.crawl.robots import LENGTH_MAX, Memory
from throttle.crawl.url_list import printable
from throttle.crawl.web_url import WebUrl

FAILING_MAX = 10_000  # hosts; the oldest of more is taken for new when it fails again

Extract = Callable[[Page], Any]


class Dispatcher:
    """Runs in one event loop. What it needs of the job are the callbacks:

    host_of(authority)             the host of a place
    on_result(result, links)       an errand has ended
    on_robots(text)                something to remember
    look_up(origins)               what is remembered
    has_room()                     whether anybody still takes results
    after_pump()                   all that could leave has left: time to look for more
    on_error(error)                of ours, or of `extract`'s worst
    """

    def __init__(
        self,
        options: CrawlOptions,
        fetcher: Fetcher,
        origins: Origins,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        host_of: Callable[[str], Host],
        on_result: Callable[[Result, Sequence[WebUrl]], None],
        on_robots: Callable[[RobotsText], None],
        look_up: Callable[[Sequence[str]], Awaitable[dict[str, RobotsText]]],
        has_room: Callable[[], bool],
        after_pump: Callable[[], None],
        on_error: Callable[[BaseException], None],
        extract: Extract | None = None,
    ) -> None:
        self._options = options
        self._fetcher = fetcher
        self._origins = origins
        self._clock = clock
        self._wall_clock = wall_clock
        self._host_of = host_of
        self._on_result = on_result
        self._on_robots = on_robots
        self._look_up = look_up
        self._has_room = has_room
        self._after_pump = after_pump
        self._on_error = on_error
        self._extract = extract
        self._loop = asyncio.get_running_loop()
        self.frontier: Frontier[Errand] = Frontier(self.plan_pump)
        self.is_open = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._failing: dict[Host, tuple[float, Problem | None, str]] = {}
        rate = options.max_rate
        self._ceiling = None if rate is None else TokenBucket(rate, max(1.0, 0.1 * rate), clock())
        self._timer: asyncio.TimerHandle | None = None
        self._is_planned = False

    # -- in

    def admit(self, host: Host, errands: Iterable[Errand], *, stored: int = 0) -> None:
        """Errands whose target is on that host; `stored` more can be loaded."""
        ready, held = self._sorted(host, errands)
        self.frontier.add(host, ready, stored=stored, held=held)
        self.plan_pump()

    def loaded(self, host: Host, errands: Sequence[Errand]) -> None:
        """More of a lane that was hungry."""
        ready, held = self._sorted(host, errands)
        self.frontier.loaded(host, ready, taken=len(errands), held=held)
        self.plan_pump()

    def _admit_first(self, host: Host, errand: Errand) -> None:
        """One that is under way."""
        ready, held = self._sorted(host, [errand])
        if ready:
            self.frontier.add_first(host, errand)
        elif held:
            self.frontier.add(host, (), held=held)
        self.plan_pump()

    def _sorted(self, host: Host, errands: Iterable[Errand]) -> tuple[list[Errand], int]:
        """Those that may be sent, and how many wait for robots.txt. What is disallowed has its result at once."""
        admitted = self._origins.admit(errands, obeys=self._obeys_robots(host))
        for result in admitted.results:
            result.fetched_at = self._wall_clock()
            self._on_result(result, ())
        if admitted.unknown:
            self._begin(self._ask_robots(host, admitted.unknown), self._asking)
        return admitted.ready, admitted.held

    def _obeys_robots(self, host: Host) -> bool:
        own = self._options.per_host.get(host.name)
        return self._options.robots if own is None or own.robots is None else own.robots

    # -- out

    @property
    def free_slots(self) -> int:
        return self._options.concurrency - len(self._tasks)

    @property
    def in_flight(self) -> int:
        return len(self._tasks)

    @property
    def is_idle(self) -> bool:
        return not (self._tasks or self._asking or self._origins.waiting) and self.frontier.is_empty

    def plan_pump(self) -> None:
        """Soon; several wishes are one pump."""
        if not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_planned = False
        now = self._clock()
        wait: float | None = None
        while self.is_open and self.free_slots > 0 and self._has_room():
            if self._ceiling is not None and (wait := self._ceiling.seconds_until_token(now) or None) is not None:
                break
            turn = self.frontier.pop(now)
            if turn is None:
                break
            self._go(turn)
        if self.is_open:
            self._set_timer(now if wait is None else now + wait, now)
        self._after_pump()

    def _set_timer(self, at: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at == now:
            next_time = self.frontier.next_time() if self.free_slots > 0 else None
            if next_time is None:
                return
            at = next_time
        self._timer = self._loop.call_later(max(0.0, at - now), self.plan_pump)

    def _go(self, turn: Turn[Errand]) -> None:
        place = turn.place
        if isinstance(place, Place):
            if self._ceiling is not None:
                self._ceiling.take()
            task = self._begin(self._run(turn.host, turn.item, place), self._tasks)
            # A task that is cancelled before its first step runs no `finally`.
            task.add_done_callback(lambda _: None if place.is_told else turn.host.give_back(place))
        elif turn.item.is_robots:
            self._robots_known(turn.item, None, b"")
        elif isinstance(place, HostRests):
            self._on_result(no_answer(turn.item, Problem.RESTS, str(place)), ())
        else:
            _, problem, detail = self._failing.get(turn.host, (0.0, None, ""))
            told = str(place) if problem is None else f"not tried, as its host failed again and again: {detail}"
            self._on_result(no_answer(turn.item, problem or Problem.BLOCKED, told), ())

    def _begin(self, work: Any, among: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work)
        among.add(task)
        task.add_done_callback(lambda done: self._ended(done, among))
        return task

    def _ended(self, task: asyncio.Task[None], among: set[asyncio.Task[None]]) -> None:
        among.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)
        self.plan_pump()

    async def close(self, *, at_once: bool = False) -> None:
        """Nothing more is sent; what is open ends by itself, or is cut off."""
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        tasks = self._tasks | self._asking
        if at_once:
            for task in tasks:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # -- one request

    async def _run(self, host: Host, errand: Errand, place: Place) -> None:
        is_followed = errand.depth < self._options.follow
        keeps = errand.is_robots or is_followed or self._extract is not None
        body_max = LENGTH_MAX if errand.is_robots else None
        fetched = await self._fetcher.fetch(errand, host, place, body_max=body_max, keeps=keeps)
        step: Result | Hop | TryAgain | None = outcome(errand, fetched, self._options)
        self._hear(host, fetched)
        if isinstance(step, TryAgain):
            step = self._again(host, errand, step)
        if isinstance(step, Hop):
            self._admit_first(self._host_of(errand.target.authority), errand)
        elif isinstance(step, Result):
            step.fetched_at = self._wall_clock()
            if errand.is_robots:
                is_whole = step.problem is None or step.problem in (Problem.LOOP, Problem.REDIRECTS, Problem.MALFORMED)
                self._robots_known(errand, step.status if is_whole else None, fetched.body)
            else:
                self._on_result(step, await self._look_into(errand, fetched, step))

    async def _look_into(self, errand: Errand, fetched: Fetched, result: Result) -> Sequence[WebUrl]:
        if fetched.status is None or fetched.problem is not None:
            return ()
        page = Page(errand.target.url, fetched.status, fetched.headers, fetched.body)
        if self._extract is not None:
            try:
                data = self._extract(page)
                data = await data if inspect.isawaitable(data) else data
                json.dumps(data)  # what cannot be written down would end the job with the next batch
                result.data = data
            except Exception as error:
                result.problem, result.detail = Problem.EXTRACT, printable(f"{type(error).__name__}: {error}", 500)
        if errand.depth < self._options.follow and page.status == 200 and page.is_html:
            return await asyncio.to_thread(links, page.text, page.url, self._options.agent)
        return ()

    def _hear(self, host: Host, fetched: Fetched) -> None:
        """A host of which nothing good was heard for long is given up: its URLs would take hours to say so."""
        if fetched.status is not None and fetched.status not in (429, 503):
            self._failing.pop(host, None)
            return
        since = self._failing.get(host, (self._clock(),))[0]
        problem = fetched.problem if fetched.status is None else None
        if len(self._failing) > FAILING_MAX:
            del self._failing[next(iter(self._failing))]
        self._failing[host] = (since, problem, fetched.detail)
        if self._clock() - since > self._options.give_up_after:
            host.stop(self._clock(), f"nothing but refusals and failures for {self._options.give_up_after:.0f} s")

    def _again(self, host: Host, errand: Errand, step: TryAgain) -> Result | None:
        now = self._clock()
        if host.stopped is not None:
            if step.result.problem is None:
                step.result.problem, step.result.detail = Problem.BLOCKED, host.stopped
            return step.result
        if not host.may_retry(now):
            return step.result
        errand.attempt += 1
        errand.spent = 0.0
        if step.is_refused:
            self.frontier.add_first(host, errand)  # the host rests, and this one is its scout
        else:
            self.frontier.add_later(host, errand, now + host.politeness.backoff.seconds(errand.attempt, host.random))
        return None

    # -- robots.txt

    async def _ask_robots(self, host: Host, origins: Sequence[str]) -> None:
        remembered = await self._look_up(origins)
        for origin in origins:
            text = remembered.get(origin)
            memory = None if text is None else Memory(text.read_at, text.status, text.text, text.failing_since)
            if self._origins.remembered(origin, memory):
                self._let_in(origin)
            else:
                target = WebUrl(f"{origin}/robots.txt", origin, origin.partition("://")[2])
                self.frontier.add_first(host, Errand(ROBOTS_ID, target.url, target, for_origin=origin))
        self.plan_pump()

    def _robots_known(self, errand: Errand, status: int | None, text: bytes) -> None:
        memory = self._origins.heard(errand.for_origin, status, text)
        self._on_robots(RobotsText(errand.for_origin, memory.read_at, memory.status, memory.text, memory.failing_since))
        self._let_in(errand.for_origin)

    def _let_in(self, origin: str) -> None:
        host = self._host_of(origin.partition("://")[2])
        interval = self._origins.rules(origin).interval
        if interval_of(host) < interval <= self._options.wait_max:
            slow_down(host, interval, self._clock())
            host.bucket.give_back()  # the interval is between pages: reading robots.txt has not begun it
        waiting = self._origins.take_waiting(origin)
        ready, held = self._sorted(host, waiting)
        self.frontier.add(host, ready, held=held - len(waiting))
        self.plan_pump()
