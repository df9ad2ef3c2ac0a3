"""Who asks, and under which keys the hits count.

A caller cannot choose who it is: the address comes from the socket, or from trusted proxies (`address.py`); the agent
is cut short before anything looks at it; keys are hashes that no outsider can foresee.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from throttle.server.address import AddressReader
from throttle.server.agents import LONGEST, Agent, CallerClass
from throttle.server.rule import Hashes

Scope = Mapping[str, Any]
Classify = Callable[[bytes], Agent]
IsWebApi = Callable[[Scope], bool]
Identify = Callable[[Scope], str | None]


class Caller(NamedTuple):
    """One request's sender."""

    caller_class: CallerClass
    is_stack_exempt: bool
    hashes: Hashes
    agent: bytes
    """the User-Agent, cut to 512 bytes"""
    address: str
    """an IPv4 address, an IPv6 network, or «unknown»"""


class CallerReader:
    """Reads the caller from an ASGI scope, in about a microsecond."""

    def __init__(
        self,
        *,
        address: AddressReader,
        classify: Classify,
        stack_exempt_agents: Sequence[str] = (),
        api_paths: Sequence[str] = (),
        is_web_api: IsWebApi | None = None,
        identify: Identify | None = None,
    ) -> None:
        self._address = address
        self._classify = classify
        self._stack_exempt = tuple(name.lower().encode("latin-1", "replace") for name in stack_exempt_agents)
        self._api_paths = tuple(api_paths)
        self._api_prefixes = tuple(path.rstrip("/") + "/" for path in api_paths)
        self._is_web_api = is_web_api
        self._identify = identify

    def __call__(self, scope: Scope) -> Caller:
        headers = scope["headers"]
        raw = b""
        for name, value in headers:
            if name == b"user-agent":  # given twice, the first counts
                raw = value[:LONGEST]
                break
        agent = self._classify(raw)
        address = self._address(scope.get("client"), headers)
        caller_class = agent.caller_class
        if caller_class.is_browser and self._api_paths and self._calls_web_api(scope):
            caller_class = CallerClass.ASSUMED_BOT
        user = None if self._identify is None else self._identify(scope)
        return Caller(
            caller_class,
            bool(self._stack_exempt) and any(name in raw.lower() for name in self._stack_exempt),
            (
                0,
                hash((address, raw)) if user is None else hash((user,)),
                hash((address, agent.crawler)) if agent.crawler is not None else 0,
            ),
            raw,
            address,
        )

    def _calls_web_api(self, scope: Scope) -> bool:
        path = scope["path"]
        return (
            path in self._api_paths
            or path.startswith(self._api_prefixes)
            or (self._is_web_api is not None and self._is_web_api(scope))
        )
