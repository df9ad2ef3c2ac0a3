"""Keys beyond address and agent (`Limits.modern`): the networks, and a browser's own by its cookie.

Here it is also told whether a browser asks for a page or for what a page loads. That header can be forged, as all of
them can, so it leads to another stack and exempts from nothing.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from throttle.server.cookies import NAME, PENDING, Cookies
from throttle.server.networks import NetworkKeys
from throttle.server.rule import Hashes

if TYPE_CHECKING:
    from throttle.server.caller import Caller, Rules

PARTS = frozenset(
    b"audio audioworklet empty font image json manifest paintworklet report script serviceworker sharedworker style "
    b"track video websocket worker xslt".split()
)
"""what Sec-Fetch-Dest says of all but pages and frames (Fetch, 2.2.5); what it may say one day is a page"""

FORGED_MAX = 8
"""Cookie fields of one request whose signature is looked at, each for a few µs, if none of them is genuine"""


class FurtherKeys:
    """Completes what is known of a caller by its address and agent; of browsers, by two headers more."""

    def __init__(self, networks: NetworkKeys, cookies: Cookies, wall_clock: Callable[[], float]) -> None:
        self._networks_of = networks.of
        self._read_cookie = cookies.read
        self._wall_clock = wall_clock

    def of(
        self,
        headers: Sequence[tuple[bytes, bytes]],
        rules: "Rules",
        hashes: Hashes,
        address: str,
        agent: bytes,
        is_user: bool,
    ) -> "Caller":
        """The caller, with the rules for its kind of request. A user (`is_user`) has a stack already."""
        _, caller, crawler = hashes
        network, wide_network = self._networks_of(address)
        further = rules.further
        if further is not None and further.acquainted is None:  # a browser
            parts, newcomer = further.parts, None if is_user else further.newcomer
            seeks_part, seeks_cookie, forged = parts is not None, newcomer is not None, 0
            for name, value in reversed(headers):  # both stand near the end in most browsers' requests
                if seeks_cookie and name == b"cookie":
                    if NAME not in value:
                        continue  # it may stand in another: HTTP/2 may split the field
                    own = self._read_cookie(value, self._wall_clock())
                    if own is None:
                        forged += 1
                        seeks_cookie = forged < FORGED_MAX
                        continue
                    seeks_cookie, newcomer = False, None
                    if own != PENDING:
                        caller = own
                elif seeks_part and name == b"sec-fetch-dest":
                    seeks_part = False
                    if parts is not None and value in PARTS:
                        rules = parts
                elif not (seeks_cookie or seeks_part):
                    break
            if newcomer is not None and rules is not parts:
                rules = newcomer
        return rules, (0, caller, crawler, network, wide_network), address, agent
