"""Everything that follows from the settings of a site, compiled; replaced as a whole when they change."""

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

from throttle.rate_limit_fields import policy_value
from throttle.server.address import Networks, packed_address
from throttle.server.agents import CallerClass
from throttle.server.caller import CallerReader, Classify, Identify, IsWebApi, Rules, Standing
from throttle.server.exempt import Exempt
from throttle.server.policy import handle_request, wake_rank
from throttle.server.refusal import BANNED
from throttle.server.rule import LoadRule, Rule
from throttle.server.settings import PathLimits, Settings
from throttle.server.stores import Store
from throttle.server.tally import Tally

_BAN = LoadRule(BANNED, at_most=0, sleeping_max=0)  # there is never room


class Rulebook:
    """What is asked of whom. `tallies` holds the counts, by class, and outlives a change of settings."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        tallies: defaultdict[CallerClass, Tally],
        *,
        classify: Classify,
        is_web_api: IsWebApi | None = None,
        identify: Identify | None = None,
    ) -> None:
        self.settings = settings
        self.enforces = settings.enforce
        self.keeps_streams = settings.count_streams
        self._store = store
        self._tallies = tallies
        self._statuses = {BANNED: 403, **settings.statuses}
        self._pause_exempt = Networks(settings.limits.pause_exempt, "pause_exempt", settings.ipv6_prefix)
        self.compiled = lru_cache(maxsize=None)(self._compile)  # as many as classes times path limits
        reader = CallerReader(
            self.compiled,
            settings,
            classify=classify,
            is_web_api=is_web_api,
            identify=identify,
            digest=store.digest,
        )
        # Bound once: calling an instance costs 60 ns more.
        self.caller = reader.__call__
        self.ignores_a_proxy = reader.ignores_a_proxy
        self.is_exempt = Exempt(settings.exempt_paths, settings.exempt_prefixes, settings.exempt_preflights).__call__

    def status_of(self, reason: str) -> int:
        """The status of a refusal by the rule of that name."""
        return self._statuses.get(reason) or self._statuses.get(reason.partition(":")[0]) or self._statuses["*"]

    def is_pause_exempt(self, address: str) -> bool:
        packed = packed_address(address.partition("/")[0])
        return packed is not None and packed in self._pause_exempt

    def _compile(self, caller_class: CallerClass, place: int, standing: Standing, *, is_stack_exempt: bool) -> Rules:
        limits = self.settings.path_limits[place - 1].limits if place else self.settings.limits
        rules: list[Rule | LoadRule] = []
        if standing is Standing.BANNED:
            rules = [_BAN]
        elif standing is Standing.RULED:
            rules = list(handle_request(caller_class, limits, is_stack_exempt=is_stack_exempt))
        if place:
            rules = [_named_for(self.settings.path_limits[place - 1], rule) for rule in rules]
        # In a dry run nothing is told, so nothing needs to be known of what is left.
        tells = self.settings.rate_limit_fields and self.enforces
        return Rules(
            caller_class,
            standing,
            limits,
            self._store.prepare(rules, tells_quotas=tells),
            wake_rank(caller_class),
            policy_value([rule for rule in rules if isinstance(rule, Rule)]),
            self._tallies[caller_class],
        )


def _named_for(place: PathLimits, rule: Rule | LoadRule) -> Rule | LoadRule:
    """The rule under a name of its own, so that its hits count apart. The load is the whole site's."""
    if isinstance(rule, LoadRule):
        return rule
    methods = "" if place.methods is None else f"({'+'.join(place.methods)})"
    return replace(rule, name=f"{rule.name}:{quote(place.path)}{methods}")
