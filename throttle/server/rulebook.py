"""Everything that follows from the settings of a site, compiled; replaced as a whole when they change."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from starlette.types import Scope

from throttle.rate_limit_fields import policy_value
from throttle.server.acquaintances import Acquaintance
from throttle.server.address import Networks, packed_address
from throttle.server.agents import CallerClass
from throttle.server.caller import CallerReader, Classify, Further, Identify, IsWebApi, Rules, Standing
from throttle.server.cookies import Cookies
from throttle.server.evidence import Finding
from throttle.server.exempt import Exempt
from throttle.server.keys import FurtherKeys
from throttle.server.networks import NetworkKeys
from throttle.server.policy import asks_for_networks, handle_request, wake_rank
from throttle.server.refusal import BANNED
from throttle.server.rule import LoadRule, Rule
from throttle.server.settings import PathLimits, Settings
from throttle.server.stores import Store
from throttle.server.tally import Tallies
from throttle.server.verify import Verifier

_BAN = LoadRule(BANNED, at_most=0, sleeping_max=0)  # there is never room


class Rulebook:
    """What is asked of whom. `tallies` holds the counts, and outlives a change of settings."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        tallies: Tallies,
        *,
        classify: Classify,
        is_web_api: IsWebApi | None = None,
        identify: Identify | None = None,
        app: Any = None,
        verify: Verifier | None = None,
        secret: bytes = b"",
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.enforces = settings.enforce
        self.keeps_streams = settings.count_streams
        self.releases_at_start = settings.release_at == "start"
        self._store = store
        self._tallies = tallies
        self._statuses = {BANNED: 403, **settings.statuses}
        self._pause_exempt = Networks(settings.limits.pause_exempt, "pause_exempt", settings.ipv6_prefix)
        self.compiled = lru_cache(maxsize=None)(self._compile)  # as many as classes times path limits
        self._cookies = Cookies(secret, store.digest)
        self._gives_cookies = bool(secret) and self.enforces  # a dry run changes no answer
        self._wall_clock = wall_clock
        reader = CallerReader(
            self.compiled,
            settings,
            classify=classify,
            is_web_api=is_web_api,
            identify=identify,
            verify=verify,
            further_keys=self._further_keys(),
            digest=store.digest,
        )
        # Bound once: calling an instance costs 60 ns more.
        self.caller = reader.__call__
        self.who = reader.who
        self.ignores_a_proxy = reader.ignores_a_proxy
        self.is_exempt = Exempt(
            settings.exempt_paths, settings.exempt_prefixes, settings.exempt_preflights, app
        ).__call__

    def status_of(self, reason: str) -> int:
        """The status of a refusal by the rule of that name."""
        status = self._statuses.get(reason)
        if status is None:  # reasons are the rules' names, so there are few
            status = self._statuses.get(reason.partition(":")[0]) or self._statuses["*"]
            self._statuses[reason] = status
        return status

    def is_pause_exempt(self, address: str) -> bool:
        packed = packed_address(address.partition("/")[0])
        return packed is not None and packed in self._pause_exempt

    def cookie(self, scope: Scope, wait: int = 0) -> tuple[bytes, bytes]:
        """Set-Cookie for a newcomer, whose cookie counts after `wait` seconds."""
        is_secure = scope.get("scheme") in ("https", "wss")
        return self._cookies.field(self._wall_clock(), wait=wait, is_secure=is_secure)

    def _further_keys(self) -> FurtherKeys | None:
        """None where nothing beyond address and agent is asked for."""
        settings = self.settings
        every = settings.every_limits
        if not any(asks_for_networks(limits) or limits.cookies or limits.parts_hits is not None for limits in every):
            return None
        networks = NetworkKeys(settings.network_prefixes, settings.wide_network_prefixes, self._store.digest)
        return FurtherKeys(networks, self._cookies, self._wall_clock)

    def _compile(
        self,
        caller_class: CallerClass,
        place: int,
        standing: Standing,
        *,
        is_stack_exempt: bool,
        finding: Finding = Finding.UNKNOWN,
    ) -> Rules:
        """The rules for a class of caller at a place, and beside them those for what is told apart further."""

        def compiled(**kind: bool) -> Rules:
            return self._compile_one(
                caller_class, place, standing, is_stack_exempt=is_stack_exempt, finding=finding, **kind
            )

        rules = compiled()
        limits = rules.limits
        if standing is not Standing.RULED:
            return rules
        if caller_class.is_browser:
            parts = None if limits.parts_hits is None else compiled(is_part=True)
            if limits.cookies and self._gives_cookies:
                newcomer = compiled()
                newcomer.further = Further(gives_cookie=True)
                rules.further = Further(parts, newcomer)
            elif parts is not None:
                rules.further = Further(parts)
        elif limits.acquaintance_visits is not None:
            since = Acquaintance.of(
                limits.acquaintance_visits, limits.acquaintance_apart_seconds, limits.acquaintance_seconds
            )
            rules.further = Further(acquainted=compiled(is_acquaintance=True), acquaintance=since)
        return rules

    def _compile_one(
        self,
        caller_class: CallerClass,
        place: int,
        standing: Standing,
        *,
        is_stack_exempt: bool,
        finding: Finding = Finding.UNKNOWN,
        is_part: bool = False,
        is_acquaintance: bool = False,
    ) -> Rules:
        limits = self.settings.path_limits[place - 1].limits if place else self.settings.limits
        rules: list[Rule | LoadRule] = []
        if standing is Standing.BANNED:
            rules = [_BAN]
        elif standing is Standing.RULED:
            rules = list(
                handle_request(
                    caller_class,
                    limits,
                    finding=finding,
                    is_stack_exempt=is_stack_exempt,
                    is_part=is_part,
                    is_acquaintance=is_acquaintance,
                )
            )
        if place:
            rules = [_named_for(self.settings.path_limits[place - 1], rule) for rule in rules]
        tells_strangers = limits.acquaintance_visits is not None
        # In a dry run nothing is told, so nothing needs to be known of what is left.
        tells = self.settings.rate_limit_fields and self.enforces
        return Rules(
            caller_class,
            standing,
            limits,
            self._store.prepare(rules, tells_quotas=tells),
            wake_rank(caller_class, is_stranger=tells_strangers and not is_acquaintance),
            policy_value([rule for rule in rules if isinstance(rule, Rule)]),
            self._tallies[caller_class, finding],
            finding,
        )


def _named_for(place: PathLimits, rule: Rule | LoadRule) -> Rule | LoadRule:
    """The rule under a name of its own, so that its hits count apart. The load is the whole site's."""
    if isinstance(rule, LoadRule):
        return rule
    methods = "" if place.methods is None else f"({'+'.join(place.methods)})"
    return replace(rule, name=f"{rule.name}:{quote(place.path)}{methods}")
