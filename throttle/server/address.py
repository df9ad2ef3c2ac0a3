"""The caller's address: from the socket, or from what trusted proxies wrote, read from the right.

Never believes a header whose writer is not trusted, and never fails on one. IPv6 counts by network, IPv4 mapped into
IPv6 as IPv4.
"""

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from functools import lru_cache

UNKNOWN = "unknown"
LONGEST = 2048
"""bytes of a forwarding header that are read, counted from the right, where the trusted proxies write"""
HOPS = 32
HEADERS = ("x-forwarded-for", "forwarded", "x-real-ip")
_MAPPED = b"\0" * 10 + b"\xff\xff"


class Networks:
    """A set of networks, asked whether an address is in it.

    `unix` stands for a peer without an address, as behind a unix socket; `*` for everybody.
    With `ipv6_prefix`, narrower IPv6 networks are widened to it, since that is how callers count.
    Raises ValueError for a text that is no address and no network.
    """

    def __init__(self, texts: Iterable[str], what: str, ipv6_prefix: int = 128) -> None:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValueError(f"{what}={texts!r}: a list of addresses or networks is needed")
        self._nets: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self.has_unix = False
        for text in texts:
            if text in ("unix", "*"):
                self.has_unix = True
            if text == "*":
                self._nets += [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
            elif text != "unix":
                try:
                    # A bare number would be read as an address.
                    if not isinstance(text, str):
                        raise ValueError("it should be a text")
                    net = ipaddress.ip_network(text, strict=False)
                    if net.version == 6 and net.prefixlen > ipv6_prefix:
                        net = net.supernet(new_prefix=ipv6_prefix)
                    self._nets.append(net)
                except ValueError as error:
                    raise ValueError(f"{what}: {text!r} is no address and no network ({error})") from None
        self._holds = lru_cache(maxsize=1024)(self._is_in_one)

    def __bool__(self) -> bool:
        return bool(self._nets) or self.has_unix

    def __contains__(self, packed: bytes) -> bool:
        return self._holds(packed)

    def _is_in_one(self, packed: bytes) -> bool:
        address = ipaddress.ip_address(packed)
        return any(address.version == net.version and address in net for net in self._nets)


def packed_address(text: str) -> bytes | None:
    """4 bytes for IPv4, also when mapped into IPv6; 16 for IPv6; None for what is no address."""
    try:
        if ":" not in text:
            return socket.inet_pton(socket.AF_INET, text)
        packed = socket.inet_pton(socket.AF_INET6, text.partition("%")[0])
    except (OSError, ValueError):  # ValueError: a NUL, or letters beyond ASCII
        return None
    return packed[12:] if packed.startswith(_MAPPED) else packed


class AddressReader:
    """The address under which a request counts: an IPv4 address, or an IPv6 network of `ipv6_prefix` bits.

    Without `trusted_proxies` no header is looked at. With them, `forwarded_header` names the one that they write (they
    must replace or append to what the client sent); None takes the first of X-Forwarded-For, Forwarded (RFC 7239)
    and X-Real-IP that is there.
    """

    def __init__(
        self,
        *,
        trusted_proxies: Sequence[str] = (),
        forwarded_header: str | None = None,
        ipv6_prefix: int = 64,
    ) -> None:
        self._trusted = Networks(trusted_proxies, "trusted_proxies")
        self.reads_headers = bool(self._trusted)
        """if not, the socket's address is all there is"""
        wanted = HEADERS if forwarded_header is None else (forwarded_header.lower(),)
        self._headers = tuple(name.encode() for name in wanted)
        self._ipv6_prefix = ipv6_prefix
        self._name = lru_cache(maxsize=8192)(self._counted_name)
        self._behind = lru_cache(maxsize=8192)(self._forwarded_address)

    def __call__(self, client: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        host = client[0] if client else ""
        if self.reads_headers:
            for wanted in self._headers:
                values = [value[-LONGEST:] for name, value in headers if name == wanted]
                if values:
                    return self._behind(host, wanted, b",".join(values)[-LONGEST:])
        return self._name(host[:64])

    def _counted_name(self, host: str) -> str:
        packed = packed_address(host)
        return UNKNOWN if packed is None else self.counted(packed)

    def counted(self, packed: bytes) -> str:
        """The text under which a packed address counts."""
        if len(packed) == 4:
            return socket.inet_ntop(socket.AF_INET, packed)
        bits = 128 - self._ipv6_prefix
        network = int.from_bytes(packed, "big") >> bits << bits
        return f"{socket.inet_ntop(socket.AF_INET6, network.to_bytes(16, 'big'))}/{self._ipv6_prefix}"

    def _forwarded_address(self, host: str, header: bytes, value: bytes) -> str:
        nearest = packed_address(host)
        if not (nearest in self._trusted if nearest is not None else self._trusted.has_unix):
            return self._name(host)
        hops = _hops_of_forwarded(value) if header == b"forwarded" else value.decode("latin-1").split(",")
        for hop in reversed(hops[-HOPS:]):
            packed = _hop_address(hop.strip())
            if packed is None:
                break  # a trusted proxy wrote down something that is no address: count what is known
            nearest = packed
            if packed not in self._trusted:
                break
        return UNKNOWN if nearest is None else self.counted(nearest)


def _hops_of_forwarded(value: bytes) -> list[str]:
    """The `for=` of each element (RFC 7239, 4); an element without one is a hop without an address.

    Split at every comma, quoted or not: an address holds none, and a quote that a client left open must not swallow
    what the proxy wrote behind it.
    """
    hops = []
    for element in value.decode("latin-1").split(","):
        pairs = (pair.partition("=") for pair in element.split(";"))
        hops.append(next((text for name, _, text in pairs if name.strip().lower() == "for"), ""))
    return hops


def _hop_address(hop: str) -> bytes | None:
    """An address as proxies write it: bare, quoted, bracketed, with a port."""
    hop = hop.strip().strip('"').strip()
    if hop.startswith("["):
        return packed_address(hop[1:].partition("]")[0])
    if hop.count(":") == 1:
        hop = hop.partition(":")[0]
    return packed_address(hop)
