"""The page's pseudo-code, line by line: the oracle, slow and plain. It imports nothing of `throttle`.

Every hit is kept for ever, in lists of times, and every question is answered by counting them. Times are integer
microseconds. Names and order are those of «Load Control in Connotea»; the facts that the page leaves out (a refused
hit counts in the stack, the matched crawler's name is the key, users count by name) are those of its program.
"""

from collections import defaultdict
from dataclasses import dataclass

SECOND = 1_000_000
"""microseconds"""

SLEEP = "sleep"
"""not an answer yet: wait, and ask again"""


@dataclass(frozen=True)
class Caller:
    """Who asks, as the page sees it."""

    kind: str
    """«browser», «known crawler» or «assumed bot»"""
    address: str
    agent: str
    crawler: str | None = None
    """the name on the list of known crawlers that matches"""
    user: str | None = None
    is_stack_exempt: bool = False

    @property
    def address_and_crawler(self) -> tuple[str | None, ...]:
        return (self.address, self.crawler)

    @property
    def address_and_agent(self) -> tuple[str | None, ...]:
        return (self.address, self.agent) if self.user is None else (self.user,)


ALL = ("all",)


class Page:
    """What the page answers: None to serve, SLEEP, or the name of the check for which it is a 503.

    A rule given as None is off.
    """

    def __init__(
        self,
        *,
        lone: int | None = 30 * SECOND,
        all_: int | None = 2 * SECOND,
        window: int = 15 * SECOND,
        max_hits: int | None = 10,
        load_max: int = 15,
        sleeping_max: int = 10,
    ) -> None:
        self.lone = lone
        self.all = all_
        self.window = window
        self.max_hits = max_hits
        self.load_max = load_max
        self.sleeping_max = sleeping_max
        self.service_paused = False
        self.last_hits: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
        self.hit_stacks: dict[tuple[str | None, ...], list[int]] = defaultdict(list)

    def handle_request(
        self, caller: Caller, now: int, *, load: int = 1, sleeping_count: int = 1, has_slept: bool = False
    ) -> str | None:
        """`load` and `sleeping_count` both include this request. To sleep is to ask again with `has_slept`."""
        if self.service_paused:
            return "service_paused"
        if why := self.bot_throttle(caller, now, load, sleeping_count, has_slept):
            return why
        if why := self.dynamic_throttle(caller, now):
            return why
        self.really_handle_request(caller, now)
        return None

    def bot_throttle(self, caller: Caller, now: int, load: int, sleeping_count: int, has_slept: bool) -> str | None:
        if caller.kind == "known crawler":
            if self.rapid_fire_by_last_hit(self.lone, caller.address_and_crawler, now):
                return "lone_crawler"
            self.has_passed(caller.address_and_crawler, now)
            if self.rapid_fire_by_last_hit(self.all, ALL, now):
                return "all_crawlers"
            self.has_passed(ALL, now)
            if why := self.load_defer(load, sleeping_count, has_slept):
                return why
        elif caller.kind == "assumed bot":  # noqa: SIM102  the page's two branches, side by side
            if why := self.load_defer(load, sleeping_count, has_slept):
                return why
        return None

    def dynamic_throttle(self, caller: Caller, now: int) -> str | None:
        if caller.is_stack_exempt:
            return None
        if self.rapid_fire_by_hit_stack(self.window, self.max_hits, caller.address_and_agent, now):
            self.hit_stacks[caller.address_and_agent].append(now)  # a hit refused here counts too
            return "hit_stack"
        return None

    def rapid_fire_by_last_hit(self, interval: int | None, key: tuple[str | None, ...], now: int) -> bool:
        """Has there been a hit in the given time interval?"""
        return interval is not None and any(now - hit < interval for hit in self.last_hits[key])

    def rapid_fire_by_hit_stack(self, interval: int, hits: int | None, key: tuple[str | None, ...], now: int) -> bool:
        """Have there been the given number of hits in the given time interval?"""
        return hits is not None and sum(now - hit < interval for hit in self.hit_stacks[key]) >= hits

    def load_defer(self, load: int, sleeping_count: int, has_slept: bool) -> str | None:
        if load <= self.load_max:
            return None
        if has_slept:
            return "load_defer"
        if sleeping_count > self.sleeping_max:
            return "load_defer"
        return SLEEP

    def really_handle_request(self, caller: Caller, now: int) -> None:
        if caller.kind == "known crawler":  # its clocks start when it is served
            self.last_hits[caller.address_and_crawler].append(now)
            self.last_hits[ALL].append(now)
        if not caller.is_stack_exempt:
            self.hit_stacks[caller.address_and_agent].append(now)

    def has_passed(self, key: tuple[str | None, ...], now: int) -> None:
        """A last-hit check lets a crawler through. Nothing starts yet."""

    # Beyond the page: the wait that is left, found by trying every instant at which a hit leaves.

    def is_rapid_fire(self, caller: Caller, now: int) -> bool:
        """Is any timed check against this caller, were it to come now? Nothing is counted."""
        if caller.kind == "known crawler" and (
            self.rapid_fire_by_last_hit(self.lone, caller.address_and_crawler, now)
            or self.rapid_fire_by_last_hit(self.all, ALL, now)
        ):
            return True
        return not caller.is_stack_exempt and self.rapid_fire_by_hit_stack(
            self.window, self.max_hits, caller.address_and_agent, now
        )

    def wait_left(self, caller: Caller, now: int) -> int:
        """Microseconds until no timed check is against this caller, if nobody asks meanwhile."""
        leaves = {now}
        for interval, key in ((self.lone, caller.address_and_crawler), (self.all, ALL)):
            leaves |= {hit + interval for hit in self.last_hits[key] if interval is not None}
        leaves |= {hit + self.window for hit in self.hit_stacks[caller.address_and_agent]}
        to_come = sorted(leave for leave in leaves if leave >= now)
        return next(leave for leave in to_come if not self.is_rapid_fire(caller, leave)) - now


class Original(Page):
    """The original program's order of clocks, which is all that difference 1 changes.

    A crawler's clock starts as soon as its own check lets it through, whatever the later checks say.
    """

    def has_passed(self, key: tuple[str | None, ...], now: int) -> None:
        self.last_hits[key].append(now)

    def wake(self, caller: Caller, now: int, *, load: int) -> str | None:
        """What is left of the pseudo-code after its `sleep(delay)`; a second start would meet its own clocks."""
        if why := self.load_defer(load, 1, has_slept=True):
            return why
        if why := self.dynamic_throttle(caller, now):
            return why
        self.really_handle_request(caller, now)
        return None
