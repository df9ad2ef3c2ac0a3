"""The networks of an address: keys that hold whatever agents and addresses a caller makes up within them."""

from functools import lru_cache

from throttle.server.address import packed_address
from throttle.server.stores import Digest

Prefixes = tuple[int, int]
"""bits of an IPv4 and of an IPv6 address"""


class NetworkKeys:
    """`of(address)`: the hashed keys of its network, and of the wider one around that.

    What is no address (behind a unix socket without a trusted proxy) is a network of its own.
    """

    def __init__(self, network: Prefixes, wide: Prefixes, digest: Digest = hash) -> None:
        self._digest = digest
        self._prefixes = {4: (network[0], wide[0]), 16: (network[1], wide[1])}
        # An address that comes again costs 0.1 µs; each of a flood 1.5.
        self.of = lru_cache(maxsize=8192)(self._keys_of)

    def _keys_of(self, address: str) -> tuple[int, int]:
        packed = packed_address(address.partition("/")[0])
        if packed is None:
            return self._digest((address,)), self._digest((address,))
        narrow, wide = self._prefixes[len(packed)]
        return self._digest(_prefix(packed, narrow)), self._digest(_prefix(packed, wide))


def _prefix(packed: bytes, bits: int) -> tuple[int, bytes]:
    """The first bits; as bytes, whose hashes no outsider can foresee."""
    beyond = 8 * len(packed) - bits
    return len(packed) - beyond, (int.from_bytes(packed, "big") >> beyond << beyond).to_bytes(len(packed), "big")
