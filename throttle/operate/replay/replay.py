"""A log's hits through the very policy and store of the live site, under several sets of limits at once."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from throttle.operate.access_log.line import UNKNOWN, Hit
from throttle.operate.replay.site import ReplayedSite
from throttle.operate.replay.tally import Bursts, Tally, WorstCallers
from throttle.operate.replay.variants import Variant, variants
from throttle.server.agents import CallerClass, Classifier, classify
from throttle.server.caller import CallerReader, Compile, Rules, Standing
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import MICROSECONDS
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings
from throttle.server.tally import Tally as LiveTally

STATIC_EXTENSIONS = (
    *(".css", ".js", ".mjs", ".map", ".woff", ".woff2", ".ttf", ".otf", ".eot"),
    *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp", ".avif", ".bmp", ".mp3", ".mp4", ".webm"),
)
"""of paths that are taken for files of a page, since a log does not tell what the application mounted as static"""


class Compared(NamedTuple):
    """A set of limits that is replayed beside the one in question."""

    variant: Variant
    tallies: dict[CallerClass, Tally]
    """of the classes whom the change concerns; for the others nothing changes"""


class _Ask(NamedTuple):
    """What one site is asked for a request of one class."""

    site: ReplayedSite
    tally: Tally
    rules: Rules


class _Asks(NamedTuple):
    """All that is asked for a request of one class, ready made."""

    mine: _Ask
    bursts: Bursts
    others: list[_Ask]
    """the compared sites whom the class concerns"""
    with_files: _Ask | None


class Replay:
    """Feed it hits in the order of their start, then read what became of them.

    - `has_load`: the load gate is replayed, with each hit's duration, or `assume_duration` seconds where it has none.
      Otherwise requests take no time, and the gate refuses nobody.
    - `static_extensions`: requests for such paths are left out; what would be with them is counted beside.
    - `compares`: also try half and twice each limit.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        has_load: bool = False,
        assume_duration: float | None = None,
        static_extensions: tuple[str, ...] = STATIC_EXTENSIONS,
        compares: bool = True,
    ) -> None:
        limits = settings.limits
        self.settings = settings
        self.has_load = has_load
        self.assume_duration = assume_duration
        self.static_extensions = static_extensions
        self.first: int | None = None
        self.last = 0
        """microseconds since 1970 of the first and the last hit"""
        self.hits = self.exempt = self.files = self.forwarded = self.timed = 0
        """hits; those of exempt paths; for static files; with a forwarded address; with a duration"""
        self.duration = 0
        """of all timed hits, in microseconds"""
        self.worst = WorstCallers()
        self.tallies = {one: Tally(one, self.worst) for one in CallerClass}
        self.bursts = {
            one: Bursts(round(limits.stack_seconds * MICROSECONDS), limits.stack_hits or 10) for one in CallerClass
        }
        self.compared = [
            Compared(one, {c: Tally(c) for c in CallerClass if has_load or _differ(c, limits, one)})
            for one in (variants(limits, has_load=has_load) if compares else ())
        ]
        self.with_files = {one: Tally(one) for one in CallerClass} if static_extensions else {}
        self._site, self._files_site = ReplayedSite(), ReplayedSite()
        self._other_sites = [ReplayedSite() for _ in self.compared]
        self._book = _rulebook(settings, limits, self._site)
        own = None if settings.agent_table is None else Classifier(table=settings.agent_table)
        self._caller = CallerReader(self._compiler(), settings, classify=own.classify if own else classify)

    def _compiler(self) -> Compile:
        """One look-up a request serves all sites: the rules for a class carry what each site is asked for it."""
        files_book = _rulebook(self.settings, self.settings.limits, self._files_site)
        others = [
            (_rulebook(self.settings, one.variant.limits, site), site, one.tallies)
            for one, site in zip(self.compared, self._other_sites, strict=True)
        ]

        @cache
        def compiled(caller_class: CallerClass, place: int, standing: Standing, *, is_stack_exempt: bool) -> Rules:
            def rules_of(book: Rulebook) -> Rules:
                return book.compiled(caller_class, place, standing, is_stack_exempt=is_stack_exempt)

            mine, with_files = rules_of(self._book), None
            if self.with_files:
                with_files = _Ask(self._files_site, self.with_files[caller_class], rules_of(files_book))
            asks = _Asks(
                _Ask(self._site, self.tallies[caller_class], mine),
                self.bursts[caller_class],
                [
                    _Ask(site, tallies[caller_class], rules_of(book))
                    for book, site, tallies in others
                    if caller_class in tallies
                ],
                with_files,
            )
            return Rules(caller_class, standing, mine.limits, asks, mine.rank, b"", mine.tally)

        return compiled

    def run(self, hits: Iterable[Hit]) -> bool:
        """Replay all hits; False when it was interrupted by Ctrl-C, and what was read so far counts."""
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(self._run(hits))
        finally:
            loop.close()

    async def _run(self, hits: Iterable[Hit]) -> bool:
        """A coroutine that awaits nothing: sleepers' futures want a running loop."""
        is_whole = True
        try:
            self._take(hits)
        except KeyboardInterrupt:
            is_whole = False
        for site in (self._site, *self._other_sites, self._files_site):
            site.finish()
        for bursts in self.bursts.values():
            bursts.finish()
        return is_whole

    def _take(self, hits: Iterable[Hit]) -> None:
        is_exempt, read_caller, extensions = self._book.is_exempt, self._caller, self.static_extensions
        has_load, assumed = self.has_load, round((self.assume_duration or 0) * MICROSECONDS)
        scope: dict[str, Any] = {"type": "http"}
        for now, logged, address, method, path, agent, forwarded in hits:
            self.hits += 1
            self.last = now
            if self.first is None:
                self.first = now
            scope["path"], scope["method"], scope["client"] = path, method, (address, 0)
            scope["headers"] = headers = [(b"user-agent", agent)]
            if forwarded:
                self.forwarded += 1
                headers.append((b"x-forwarded-for", forwarded))
            duration = 0
            if logged != UNKNOWN:
                self.timed += 1
                self.duration += logged
            if has_load:
                duration = assumed if logged == UNKNOWN else logged
            if is_exempt(scope):
                self.exempt += 1
                continue
            rules, hashes, address, agent = read_caller(scope)
            mine, bursts, others, with_files = rules.prepared
            key = hashes[1]
            who = (key, address, agent, now)
            if with_files is not None:
                site, tally, its_rules = with_files
                tally.requests += 1
                tally.callers.add(key)
                site.ask(tally, who, its_rules, hashes, now, duration)
                if path.lower().endswith(extensions):
                    self.files += 1
                    continue
            bursts.note(key, now)
            site, tally, its_rules = mine
            tally.requests += 1
            tally.callers.add(key)
            site.ask(tally, who, its_rules, hashes, now, duration)
            for site, tally, its_rules in others:
                site.ask(tally, who, its_rules, hashes, now, duration)


def _rulebook(settings: Settings, limits: Limits, site: ReplayedSite) -> Rulebook:
    """The live site's rules, under these limits and in this site's store; nothing is told to callers."""
    told_nothing = replace(settings, limits=limits, rate_limit_fields=False)
    return Rulebook(told_nothing, site.store, defaultdict(LiveTally), classify=classify)


def _differ(caller_class: CallerClass, limits: Any, variant: Variant) -> bool:
    """The variant asks this class something else. (Without the load, classes do not meet: no key is shared.)"""
    return list(handle_request(caller_class, limits)) != list(handle_request(caller_class, variant.limits))
