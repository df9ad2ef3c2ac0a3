"""What a host is: the registrable domain, since its subdomains share machines and limits.

By the public suffix list, offline, its private part included (each site under github.io is a host of its own).
The destination counts, however many source addresses the requests leave from.
"""

from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

NAME_LENGTH_MAX = 253


class HostKey:
    """Call it with an authority (`www.example.org`, `127.0.0.1:8000`); `exceptions` are hosts of their own.

    An exception covers the names below it: with `{"api.example.org"}`, v2.api.example.org belongs to it.
    Addresses, and names without a registrable domain such as localhost, count with their port: on one
    machine, different ports are different sites.
    """

    def __init__(self, exceptions: frozenset[str] = frozenset()) -> None:
        self.exceptions = frozenset(name.lower().rstrip(".") for name in exceptions)

    def __call__(self, authority: str) -> str:
        authority = authority.rsplit("@", 1)[-1].lower()
        name = _without_port(authority).rstrip(".")
        if self.exceptions:
            labels = name.split(".")
            for start in range(len(labels)):
                candidate = ".".join(labels[start:])
                if candidate in self.exceptions:
                    return candidate
        return registrable_domain(name) or authority


@lru_cache(maxsize=10_000)
def registrable_domain(name: str) -> str | None:
    """`example.co.uk` for `www.example.co.uk`; None for an address, a public suffix itself, or a bare name."""
    if len(name) > NAME_LENGTH_MAX or _is_address(name):
        return None
    domain: str | None = _suffixes().privatesuffix(name)
    return domain


@lru_cache(maxsize=1)
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # 37 ms, so at the first use

    return PublicSuffixList(accept_unknown=False)


def _without_port(authority: str) -> str:
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isdigit() and ":" not in name else authority


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
