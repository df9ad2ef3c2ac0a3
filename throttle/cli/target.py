"""What a load test is aimed at: the demo site, or a URL; and whether it may be."""

import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from throttle.load.wire import Wire, has_loopback_network

DEMO = "demo"
OWNED = "--i-own-this-host"


class TargetError(ValueError):
    """It cannot or must not be loaded; one line that says why."""


class Target(NamedTuple):
    """A site by its address; `name` is what it is called in the URL."""

    address: str
    port: int
    name: str

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    def wire(self, *, forwards: bool) -> Wire:
        """Callers have addresses of their own where this machine has them: to a site on the IPv4 loopback."""
        own = self.is_loopback and ":" not in self.address and has_loopback_network()
        return Wire(self.port, host=self.address, name=self.name, own_addresses=own, forwards=forwards)


def target_of(url: str, *, is_owned: bool) -> Target:
    """The site of a URL. Raises TargetError, also for a host that is neither this machine nor in a private network."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise TargetError(f"{url!r}: {error}") from None
    if parts.scheme == "https":
        raise TargetError(f"{url!r}: https is not spoken here; aim at the site itself, behind what ends TLS")
    if parts.scheme != "http" or not parts.hostname:
        raise TargetError(f"{url!r} is no URL such as http://127.0.0.1:8000, nor the word {DEMO}")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise TargetError(f"{url!r}: only scheme, host and port are needed; a mix's [site] names the paths")
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetError(f"{url!r}: no such host: {getattr(error, 'strerror', None) or error}") from None
    addresses = sorted({str(entry[4][0]).partition("%")[0] for entry in found}, key=lambda one: ":" in one)
    foreign = [one for one in addresses if not _is_near(one)]
    if foreign and not is_owned:
        raise TargetError(
            f"{parts.hostname} is {foreign[0]}, neither this machine nor a private network: a load test of another's "
            f"site is an attack. {OWNED} says that it is yours."
        )
    return Target(addresses[0], port, parts.netloc.rpartition("@")[2])


def _is_near(address: str) -> bool:
    read = ipaddress.ip_address(address)
    return read.is_loopback or (read.is_private and not read.is_unspecified) or read.is_link_local
