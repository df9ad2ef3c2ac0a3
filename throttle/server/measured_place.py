"""The place of a request whose time tells how much the site can run at once (`load_max="auto"`)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.types import Message, Scope, Send

from throttle.server.agents import CallerClass
from throttle.server.load_limit import LoadLimit
from throttle.server.path import app_path
from throttle.server.place import STARTS, Place, is_stream
from throttle.server.rule import MICROSECONDS
from throttle.server.stores.own_load import OwnLoad

LONGEST_SEGMENT = 64
OVERLOOKED = (None, None)
"""the kind of those that are not looked at"""


class MeasuredPlace(Place):
    """Tells the limit how long the request took, from here until its place is given back.

    Streams and WebSockets are no measure of the site, and neither are failures and what it does not have.
    """

    __slots__ = ("_began", "_caller_class", "_clock", "_gate", "_is_measured", "_limit", "_scope", "_status")

    def __init__(
        self,
        gate: OwnLoad,
        send: Send,
        keeps_streams: bool,
        at_start: bool,
        limit: LoadLimit,
        scope: Scope,
        caller_class: CallerClass,
        clock: Callable[[], float],
    ) -> None:
        Place.__init__(self, gate, send, keeps_streams, at_start)
        self._gate = gate
        self._limit = limit
        self._scope = scope
        self._caller_class = caller_class
        self._clock = clock
        self._status = 0
        self._is_measured = True
        """it counts as running for the limit"""
        self._began = limit.began(int(clock() * MICROSECONDS + 0.5))

    def send(self, message: Message) -> Awaitable[None]:
        if self._is_measured and message["type"] in STARTS:
            self._status = message.get("status", 0)
            if is_stream(message):
                self._is_measured = False
                self._limit.left(int(self._clock() * MICROSECONDS + 0.5))
        return Place.send(self, message)

    def release(self) -> None:
        if self._is_measured:
            self._is_measured = False
            now = int(self._clock() * MICROSECONDS + 0.5)
            if not 0 < self._status < 400:
                self._limit.left(now)
            elif self._limit.overlooks_next:
                self._gate.ended(OVERLOOKED, self._began, now)
            elif (kind := self._kind()) is None:
                self._limit.left(now)
            else:
                self._gate.ended(kind, self._began, now)
        Place.release(self)

    def _kind(self) -> tuple[object, object] | None:
        try:
            return (*kind_of(self._scope), self._status), self._caller_class
        except Exception:
            return None  # whatever the application has made of its scope, the place must be given back


def kind_of(scope: Mapping[str, Any]) -> tuple[int, str]:
    """What requests cost alike: the route, and the path's first segment, where that is no parameter of the route.

    For the segment tells apart what lies below a route that takes all paths, and what no router of ours has routed.
    """
    segment = app_path(scope).partition("/")[2].partition("/")[0]
    parameters = scope.get("path_params")
    if parameters and segment in map(str, parameters.values()):  # a number or a UUID, where the route says so
        segment = ""
    return id(scope.get("endpoint")), segment[:LONGEST_SEGMENT]
