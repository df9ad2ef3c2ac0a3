"""Who asks, and under which keys the hits count.

A caller cannot choose who it is: the address comes from the socket, or from trusted proxies (`address.py`); the agent
is cut short before anything looks at it; keys are hashes that no outsider can foresee.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from starlette.types import Scope

from throttle.server.address import HEADERS, AddressReader
from throttle.server.agents import LONGEST, Agent, CallerClass
from throttle.server.rule import Hashes

Classify = Callable[[bytes], Agent]
IsWebApi = Callable[[Scope], bool]
Identify = Callable[[Scope], str | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one class of caller, compiled once."""

    caller_class: CallerClass
    prepared: Any
    """in the store's form"""
    rank: int
    policy_field: bytes
    """the value of RateLimit-Policy"""


Caller = tuple[Rules, Hashes, str, bytes]
"""One request's sender: what is asked of its class; its keys; its address (an IPv4 address, an IPv6 network, or
«unknown»); its User-Agent, cut to 512 bytes. A bare tuple, since one is made for each request."""

FORWARDING = frozenset(name.encode() for name in HEADERS)

Compile = Callable[[CallerClass, bool], Rules]
"""The rules for a class, and whether the agent is exempt from the hit stack."""


class CallerReader:
    """Reads the caller from an ASGI scope, in about a microsecond."""

    def __init__(
        self,
        compiled: Compile,
        *,
        address: AddressReader,
        classify: Classify,
        stack_exempt_agents: Sequence[str] = (),
        api_paths: Sequence[str] = (),
        is_web_api: IsWebApi | None = None,
        identify: Identify | None = None,
    ) -> None:
        self._compiled = compiled
        self._address = address
        self._reads_address = address.reads_headers
        self._classify = classify
        self._stack_exempt = tuple(name.lower().encode("latin-1", "replace") for name in stack_exempt_agents)
        self._api_paths = tuple(path.rstrip("/") for path in api_paths)
        self._api_prefixes = tuple(path + "/" for path in self._api_paths)
        self._is_web_api = is_web_api
        self._has_web_api = bool(api_paths) or is_web_api is not None
        self._identify = identify
        # All that follows from the agent alone, looked up at once.
        self._profile = lru_cache(maxsize=4096)(self._profile_of)

    def __call__(self, scope: Scope) -> Caller:
        headers = scope["headers"]
        agent = b""
        for name, value in headers:
            if name == b"user-agent":  # given twice, the first counts
                agent = value[:LONGEST]
                break
        rules, as_api_client, crawler = self._profile(agent)
        if self._has_web_api and self._calls_web_api(scope):
            rules = as_api_client
        client = scope.get("client")
        if self._reads_address or client is None or ":" in client[0]:
            address = self._address(client, headers)
        else:
            address = client[0][:64]  # the kernel wrote it: an IPv4 address as it should be
        user = None if self._identify is None else self._identify(scope)
        hashes = (
            0,
            hash((address, agent)) if user is None else hash((user,)),
            0 if crawler is None else hash((address, crawler)),
        )
        return rules, hashes, address, agent

    def ignores_a_proxy(self, scope: Scope) -> bool:
        """A request that a proxy may have passed on, whose forwarding header is not believed."""
        return not self._reads_address and any(name in FORWARDING for name, _ in scope["headers"])

    def _profile_of(self, agent: bytes) -> tuple[Rules, Rules, str | None]:
        """The rules for an agent, the rules for it as an API client, and its name if it is a known crawler."""
        verdict = self._classify(agent)
        is_exempt = any(name in agent.lower() for name in self._stack_exempt)
        rules = self._compiled(verdict.caller_class, is_exempt)
        if not verdict.caller_class.is_browser:
            return rules, rules, verdict.crawler
        return rules, self._compiled(CallerClass.ASSUMED_BOT, is_exempt), None

    def _calls_web_api(self, scope: Scope) -> bool:
        path = scope["path"]
        return (
            path.startswith(self._api_prefixes)
            or path in self._api_paths
            or (self._is_web_api is not None and self._is_web_api(scope))
        )
