"""A log's hits through the very policy and store of the live site, under several sets of limits at once."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from throttle.operate.access_log.line import UNKNOWN, Hit
from throttle.operate.replay.settings import Settings
from throttle.operate.replay.site import ReplayedSite
from throttle.operate.replay.tally import Bursts, Tally, WorstCallers
from throttle.operate.replay.variants import Variant, variants
from throttle.server.address import AddressReader
from throttle.server.agents import CallerClass, classify
from throttle.server.caller import CallerReader, Compile, Rules
from throttle.server.compiled_rules import compiled_rules
from throttle.server.exempt import Exempt
from throttle.server.policy import handle_request
from throttle.server.rule import MICROSECONDS

STATIC_EXTENSIONS = (
    *(".css", ".js", ".mjs", ".map", ".woff", ".woff2", ".ttf", ".otf", ".eot"),
    *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp", ".avif", ".bmp", ".mp3", ".mp4", ".webm"),
)
"""of paths that are taken for files of a page, since a log does not tell what the application mounted as static"""

Progress = Callable[[], object]


class Compared(NamedTuple):
    """A set of limits that is replayed beside the one in question."""

    variant: Variant
    tallies: dict[CallerClass, Tally]
    """of the classes whom the change concerns; for the others nothing changes"""


class _Asked(NamedTuple):
    """All that is asked for a request of one class, ready made."""

    caller_class: CallerClass
    tally: Tally
    prepared: Any
    bursts: Bursts
    others: list[tuple[ReplayedSite, Tally, Any]]
    """the compared sites whom the class concerns"""
    with_files: tuple[ReplayedSite, Tally, Any] | None


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
        self._site = ReplayedSite(limits)
        self._other_sites = [ReplayedSite(one.variant.limits) for one in self.compared]
        self._files_site = ReplayedSite(limits)
        self._is_exempt = Exempt(paths=settings.exempt_paths, prefixes=settings.exempt_prefixes or ())
        self._caller = CallerReader(
            self._compile(),
            address=AddressReader(
                trusted_proxies=settings.trusted_proxies,
                forwarded_header=settings.forwarded_header,
                ipv6_prefix=settings.ipv6_prefix,
            ),
            classify=classify,
            stack_exempt_agents=limits.stack_exempt_agents,
            api_paths=settings.api_paths,
        )

    def _compile(self) -> Compile:
        """One look-up a request serves all sites: the rules for a class carry what each site is asked for it."""
        sites = [self._site, *self._other_sites, self._files_site]
        compilers = [compiled_rules(site.limits, site.store, tells_quotas=False) for site in sites]

        def compiled(caller_class: CallerClass, is_stack_exempt: bool) -> Rules:
            mine, *others, files = [one(caller_class, is_stack_exempt) for one in compilers]
            asked = _Asked(
                caller_class,
                self.tallies[caller_class],
                mine.prepared,
                self.bursts[caller_class],
                [
                    (site, one.tallies[caller_class], rules.prepared)
                    for one, site, rules in zip(self.compared, self._other_sites, others, strict=True)
                    if caller_class in one.tallies
                ],
                (self._files_site, self.with_files[caller_class], files.prepared) if self.with_files else None,
            )
            return mine._replace(prepared=asked)

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
        is_exempt, read_caller, extensions = self._is_exempt, self._caller, self.static_extensions
        has_load, assumed = self.has_load, round((self.assume_duration or 0) * MICROSECONDS)
        ask = self._site.ask
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
            _, tally, prepared, bursts, others, with_files = rules.prepared
            rank, key = rules.rank, hashes[1]
            who = (key, address, agent, now)
            if with_files is not None:
                files_site, tally_with_files, prepared_with_files = with_files
                tally_with_files.requests += 1
                tally_with_files.callers.add(key)
                files_site.ask(tally_with_files, who, prepared_with_files, hashes, now, rank, duration)
                if path.lower().endswith(extensions):
                    self.files += 1
                    continue
            tally.requests += 1
            tally.callers.add(key)
            bursts.note(key, now)
            ask(tally, who, prepared, hashes, now, rank, duration)
            for other, its_tally, its_prepared in others:
                other.ask(its_tally, who, its_prepared, hashes, now, rank, duration)


def _differ(caller_class: CallerClass, limits: Any, variant: Variant) -> bool:
    """The variant asks this class something else. (Without the load, classes do not meet: no key is shared.)"""
    return list(handle_request(caller_class, limits)) != list(handle_request(caller_class, variant.limits))
