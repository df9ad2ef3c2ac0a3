"""CrawlJob: URLs in, results out.

    async with CrawlJob(urls, contact="crawl@example.org") as job:
        async for result in job:
            print(result.status, result.url)

Each URL gets exactly one result, which is told only once it is written down; what was written down by an earlier run
of the same job is told first. Memory does not grow with the number of URLs: they stay in the queue, and of each host
a window is loaded. In whichever way the block is left, what is not done yet stays pending in the job's file.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from heapq import nlargest
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from throttle.client.events import Event
from throttle.client.host import Host
from throttle.client.host_key import HostKey
from throttle.client.hosts import Hosts
from throttle.crawl.at_most import slow_down
from throttle.crawl.dispatcher import Dispatcher, Extract
from throttle.crawl.errand import errand_of
from throttle.crawl.fetch import Fetcher, idle_connections_max
from throttle.crawl.holdings import Holding, Holdings
from throttle.crawl.hosts import hosts_of
from throttle.crawl.hurry import EVERY_SECONDS, hold_who_has_time
from throttle.crawl.intake import Intake, chunks
from throttle.crawl.kind import keep_kind
from throttle.crawl.options import CrawlOptions
from throttle.crawl.origins import Origins
from throttle.crawl.progress import HostProgress, Progress, progress
from throttle.crawl.queue import Added, Queue
from throttle.crawl.queue.sqlite import SqliteQueue, remove
from throttle.crawl.recorder import QueueThread, Recorder
from throttle.crawl.result import Result
from throttle.crawl.robots import user_agent
from throttle.crawl.web_url import WebUrl

CLAIM, WINDOW = 32, 64
"""hosts leased at once, URLs loaded of one"""
OUT_MAX = 2000
"""results that nobody has taken yet; with more, nothing is sent"""
POLL_SECONDS = 0.5
HOSTS_TOLD = 20


class CrawlJob:
    """`urls` are texts, from any iterable; `job` is the file that keeps the job (or another `Queue`), without one the
    job cannot be resumed. `extract(page)` makes of each page something that fits into JSON, for `result.data`; it
    may be async. `wrap` puts a transport above the throttled one, such as hishel's cache. `hosts` is for sharing what
    is known of hosts with other clients of the same event loop. Raises NoContactError, NoClientError, QueueError.
    """

    def __init__(
        self,
        urls: Iterable[str] | AsyncIterable[str] = (),
        *,
        contact: str | None = None,
        job: str | os.PathLike[str] | Queue | None = None,
        options: CrawlOptions | None = None,
        extract: Extract | None = None,
        wrap: Callable[[Any], Any] | None = None,
        hosts: Hosts | None = None,
        on_event: Callable[[Event], None] | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options = options or CrawlOptions()
        self.user_agent = user_agent(contact, options.agent)
        if isinstance(urls, str):
            raise TypeError("urls is one text, and its letters are no URLs: give a list")
        self._urls = urls
        self._given = job
        self._extract = extract
        self._wrap = wrap
        self._key = lru_cache(10_000)(HostKey(frozenset(options.per_host)))
        self.hosts = hosts if hosts is not None else hosts_of(options, self._key, on_event, random or Random())
        self._clock = clock
        self._wall_clock = wall_clock
        self._kept = ExitStack()  # the queue, and its file if nobody named one
        self._holdings = Holdings()
        self._intake = Intake(self._key, options.follow, has_external=options.external)
        self._out: asyncio.Queue[Result | None] = asyncio.Queue()
        self._tasks: set[asyncio.Future[None]] = set()
        self._is_opened = self._is_fed = self._is_claiming = self._is_polling = False
        self._may_claim = True
        self._error: BaseException | None = None
        self._end: asyncio.Task[None] | None = None
        self._told_until = 0  # number of the last earlier result that was told
        self.is_finished = False
        """every URL has its result"""
        self.stopped_by: str | None = None
        """«deadline» or «stop», if something ended the job before"""
        self.lines = self.known = self.total = self.done = 0
        """lines that were given, those of them that were known already; URLs of the job, and those with a result"""
        self.done_here = 0
        """results of this run"""

    # -- open, close

    async def __aenter__(self) -> Self:
        if self._is_opened:
            raise RuntimeError("a CrawlJob is entered once: make another, with the same job=, to go on")
        self._is_opened = True
        self._in_thread = QueueThread()
        try:
            await self._open()
        except BaseException:
            self._in_thread(self._kept.close)
            self._in_thread.close()
            raise
        return self

    def _open_queue(self) -> None:
        """In the queue's thread, so that it is closed there even if nobody waits for it any more."""
        given = self._given
        if given is None:
            handle, name = tempfile.mkstemp(prefix="throttle-crawl-", suffix=".sqlite")
            self._kept.callback(remove, Path(name))
            os.close(handle)
            given = name
        if isinstance(given, (str, os.PathLike)):
            given = SqliteQueue(given, durable=self.options.durable)
        self._queue: Queue = given
        self._kept.callback(self._queue.close)
        keep_kind(self._queue, self.options)

    async def _open(self) -> None:
        options = self.options
        await self._in_thread(self._open_queue)
        counts = await self._in_thread(self._queue.counts)
        self.total, self.done = counts.urls, counts.done
        self._earlier_until = await self._in_thread(self._queue.last_recorded)
        self._started = self._clock()
        self._fetcher = Fetcher(
            self.hosts,
            user_agent=self.user_agent,
            timeout=options.timeout,
            body_max=options.body_max,
            wrap=self._wrap,
            clock=self._clock,
            pools_max=idle_connections_max(options.hosts_max),
        )
        self._recorder = Recorder(self._queue, self._in_thread, self._recorded, self._fail)
        self._dispatcher = Dispatcher(
            options,
            self._fetcher,
            Origins(options.agent, self._wall_clock, wait_max=options.wait_max),
            clock=self._clock,
            wall_clock=self._wall_clock,
            host_of=self._host_of,
            on_result=self._landed,
            on_robots=self._recorder.add_robots,
            look_up=lambda origins: self._in_thread(self._queue.robots, origins),
            has_room=self._has_room,
            after_pump=self._look_around,
            on_error=self._fail,
            extract=self._extract,
        )
        self._begin(self._feed())
        self._begin(self._keep_leases())
        self._begin(self._watch_the_time())
        loop = asyncio.get_running_loop()
        self._deadline = None
        if options.deadline is not None:
            self._deadline = loop.call_later(options.deadline, self._stop, "deadline", False)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._end is None or not self._end.done():
            self._stop("stop", True)
            assert self._end is not None
            await asyncio.wait([self._end])
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._fetcher.aclose()
        try:
            await self._in_thread(self._kept.close)
        finally:
            self._in_thread.close()
        if self._error is not None and kind is None:
            raise self._error

    def stop(self, *, at_once: bool = False) -> None:
        """Nothing more is sent. What is open ends by itself and is told, or with `at_once` is cut off."""
        self._need_open()
        self._stop("stop", at_once)

    def _need_open(self) -> None:
        if not self._is_opened:
            raise RuntimeError("a CrawlJob works in its block only: async with CrawlJob(...) as job")

    def _stop(self, why: str, at_once: bool) -> None:
        if self.is_finished:
            return
        self.stopped_by = self.stopped_by or why
        if self._end is None:
            self._end = asyncio.create_task(self._wind_up(at_once))
        elif at_once:
            self._begin(self._dispatcher.close(at_once=True))

    async def _wind_up(self, at_once: bool) -> None:
        await self._dispatcher.close(at_once=at_once)
        await self._recorder.flush()
        self._out.put_nowait(None)

    def _fail(self, error: BaseException) -> None:
        """The job cannot go on. What was recorded is kept, and told; the rest stays pending."""
        if self._error is None:
            self._error = error
            self._stop("error", True)

    def _begin(self, work: "Coroutine[Any, Any, None] | asyncio.Future[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    # -- results out

    def __aiter__(self) -> AsyncIterator[Result]:
        return self._results()

    async def _results(self) -> AsyncIterator[Result]:
        self._need_open()
        while self._told_until < self._earlier_until:
            for number, result in await self._in_thread(self._queue.recorded, self._told_until, 500):
                self._told_until = number
                if number <= self._earlier_until:
                    yield result
        while True:
            taken = await self._out.get()
            if taken is None:
                break
            if self._out.qsize() == OUT_MAX // 2:
                self._dispatcher.plan_pump()  # there is room again
            yield taken
        self._out.put_nowait(None)  # whoever asks again is told the same
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _has_room(self) -> bool:
        return self._out.qsize() < OUT_MAX

    def _landed(self, result: Result, links: Sequence[WebUrl]) -> None:
        self._recorder.add(result, self._intake.new_links(result, links) if links else [])

    def _recorded(self, first: list[Result], added: Added, results: list[Result]) -> None:
        self._added(added)
        for result in first:
            self._tell(result)
        finished = self._holdings.recorded(results, self._clock())
        if finished:
            self._begin(self._in_thread(self._queue.release, finished))
        self._dispatcher.plan_pump()

    def _tell(self, result: Result) -> None:
        self.done += 1
        self.done_here += 1
        self._out.put_nowait(result)

    # -- URLs in

    async def _feed(self) -> None:
        async for lines in chunks(self._urls):
            added = await self._in_thread(self._intake.add, self._queue, lines)
            self.lines += len(lines)
            self.known += added.known
            self._added(added)
            self._dispatcher.plan_pump()
        self._is_fed = True
        self._dispatcher.plan_pump()

    def _added(self, added: Added) -> None:
        self.total += added.new
        for result in added.malformed:
            self._tell(result)
        for host_id, count in added.per_host.items():
            holding = self._holdings.by_id(host_id)
            if holding is None:
                self._may_claim = True
            else:
                holding.unfinished += count
                self._dispatcher.frontier.add(holding.host, (), stored=count)

    # -- hosts in

    def _host_of(self, authority: str) -> Host:
        """The same object as long as it has work: the table may forget a host that is idle for a moment."""
        return self._holdings.host(self._key(authority)) or self.hosts.host(authority, self._clock())

    def _look_around(self) -> None:
        """What could leave has left: load more, claim more, or end."""
        dispatcher = self._dispatcher
        if not dispatcher.is_open:
            return
        hungry = dispatcher.frontier.take_hungry(256)
        if hungry:
            self._begin(self._load([lane.host for lane in hungry]))
        # Which links lead away is known only when all sites are.
        is_ready = self._is_fed or not self.options.follow
        # Before the hosts at hand run out: a claim waits in line with what is written, and slots would stand empty.
        has_use = is_ready and dispatcher.frontier.ready < self.options.concurrency
        if has_use and self._may_claim and not self._is_claiming and len(self._holdings) < self.options.hosts_max:
            self._is_claiming = True
            self._begin(self._claim())
        if not self._may_claim and not self._is_polling and self._is_idle():
            self._is_polling = True
            self._begin(self._end_or_poll())

    def _is_idle(self) -> bool:
        return self._is_fed and self._dispatcher.is_idle and not (self._recorder.unwritten or self._holdings)

    async def _claim(self) -> None:
        """More hosts than needed would be hosts that no other worker may have."""
        claims = await self._in_thread(self._queue.claim, CLAIM, WINDOW)
        self._is_claiming = False
        self._may_claim = len(claims) == CLAIM
        now = self._clock()
        for claim in claims:
            host = self.hosts.host(claim.host, now)
            own = self.options.per_host.get(host.name)
            delay = None if own is None else own.min_delay
            slow_down(host, self.options.min_delay if delay is None else delay, now)
            holding = self._holdings.hold(claim.host_id, host, claim.pending)
            holding.take(claim.first)
            errands = [errand_of(one, holding.host_id, host.name, self.options.method) for one in claim.first]
            self._dispatcher.admit(host, errands, stored=claim.pending - len(errands))
        self._dispatcher.plan_pump()

    async def _load(self, hosts: list[Host]) -> None:
        held = [holding for host in hosts if (holding := self._holdings.by_host(host)) is not None]
        wanted = [(holding.host_id, holding.last_loaded) for holding in held]
        found = await self._in_thread(self._queue.load, wanted, WINDOW)
        for holding in held:
            if holding.host_id in self._holdings:
                pending = found[holding.host_id]
                holding.take(pending)
                name, method = holding.host.name, self.options.method
                errands = [errand_of(one, holding.host_id, name, method) for one in pending]
                self._dispatcher.loaded(holding.host, errands)

    async def _end_or_poll(self) -> None:
        """All that was ours is done. What others hold they may yet lose, or lead to more."""
        counts = await self._in_thread(self._queue.counts)
        self.total, self.done = counts.urls, counts.done
        if not counts.pending:
            self.is_finished = self._is_idle()
            if self.is_finished:
                self._out.put_nowait(None)
                self._end = asyncio.create_task(self._dispatcher.close())
                return
        else:
            await asyncio.sleep(POLL_SECONDS)
        self._may_claim, self._is_polling = True, False
        self._dispatcher.plan_pump()

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._queue.lease_seconds / 3)
            held = self._holdings.ids()
            ours = await self._in_thread(self._queue.renew)
            for host_id in held - ours:
                if host_id in self._holdings:  # not renewed in time: it is another's now
                    self._dispatcher.frontier.drop(self._holdings.forget(host_id, self._clock()))

    async def _watch_the_time(self) -> None:
        options = self.options
        while True:
            now = self._clock()
            at_least = (self.total - self.done) / options.max_rate if options.max_rate else 0.0
            at_most = self._started + options.deadline - now if options.deadline else float("inf")
            hold_who_has_time(self._holdings, now, at_least=at_least, at_most=at_most)
            await asyncio.sleep(EVERY_SECONDS)

    # -- how far it is

    def progress(self) -> Progress:
        """As of now, with the hosts that need longest of those of which this worker has URLs."""
        now = self._clock()
        longest = nlargest(HOSTS_TOLD, self._holdings, key=Holding.work)
        hosts = [HostProgress.of(holding.host, holding.unfinished, now) for holding in longest]
        return progress(
            hosts,
            done=self.done,
            total=self.total,
            done_here=self.done_here,
            seconds=now - self._started,
            in_flight=self._dispatcher.in_flight,
            is_reading=not self._is_fed,
        )
