"""Keys beyond address and agent (`Limits.modern`): the networks, and a browser's own by its cookie.

Here it is also told whether a browser asks for a page or for what a page loads. That header can be forged, as all of
them can, so it leads to another stack and exempts from nothing.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from throttle.server.cookies import Cookie, Cookies
from throttle.server.networks import NetworkKeys
from throttle.server.rule import Hashes

if TYPE_CHECKING:
    from throttle.server.caller import Caller, Rules

PARTS = frozenset(
    b"audio audioworklet empty font image json manifest paintworklet report script serviceworker sharedworker style "
    b"track video websocket worker xslt".split()
)
"""what Sec-Fetch-Dest says of all but pages and frames (Fetch, 2.2.5); what it may say one day is a page"""


class FurtherKeys:
    """Completes what is known of a caller by its address and agent; of browsers, by two headers more."""

    def __init__(self, networks: NetworkKeys, cookies: Cookies | None, wall_clock: Callable[[], float]) -> None:
        self._networks_of = networks.of
        self._read_cookie = None if cookies is None else cookies.read
        self._wall_clock = wall_clock

    def of(
        self,
        headers: Iterable[tuple[bytes, bytes]],
        rules: "Rules",
        hashes: Hashes,
        address: str,
        agent: bytes,
        is_user: bool,
    ) -> "Caller":
        """The caller, with the rules for its kind of request. A user (`is_user`) has a stack already."""
        _, caller, crawler = hashes
        further = rules.further
        if further is not None and further.acquainted is None:  # a browser
            read = None if is_user or further.newcomer is None else self._read_cookie
            own: bytes | Cookie = Cookie.NONE
            is_part = False
            for name, value in headers:
                if name == b"cookie":
                    if read is not None and not isinstance(own, bytes):
                        own = read(value, self._wall_clock())
                elif name == b"sec-fetch-dest":
                    is_part = value in PARTS
            if isinstance(own, bytes):
                caller = hash((own,))
            if is_part and further.parts is not None:
                rules = further.parts
            elif own is Cookie.NONE and read is not None and further.newcomer is not None:
                rules = further.newcomer
        return rules, (0, caller, crawler, *self._networks_of(address)), address, agent
