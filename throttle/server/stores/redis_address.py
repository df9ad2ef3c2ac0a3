"""Where a Redis or Valkey server is, read from a URL.

    redis://[user:password@]host[:6379][/database]       TCP
    rediss://...                                         TCP with TLS
    unix://[user:password@]/path/to/socket               a unix socket; ?db=1 for its database

A query may hold `db`, and with TLS `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile` (paths) and `ssl_cert_reqs=none` (for
a server whose certificate cannot be checked). Nothing here is ever logged with its password.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

P = TypeVar("P", bound=asyncio.BaseProtocol)

TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address, and how to log in."""

    host: str = "127.0.0.1"
    port: int = 6379
    path: str | None = None
    """of a unix socket, in place of host and port"""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    database: int = 0
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.path else f"{'rediss' if self.tls else 'redis'}://{self.host}:{self.port}"

    async def connect(self, protocol: Callable[[], P]) -> P:
        """A connection, before any word is said on it. Raises OSError."""
        loop = asyncio.get_running_loop()
        if self.path:
            return (await loop.create_unix_connection(protocol, self.path))[1]
        return (await loop.create_connection(protocol, self.host, self.port, ssl=self.tls))[1]

    def moved_to(self, host: str, port: int) -> "Address":
        """The same server's neighbour in a cluster, which answers for our keys. An empty host means the same host."""
        return replace(self, host=host or self.host, port=port, path=None)


def address_from(url: str) -> tuple[Address, dict[str, str]]:
    """The address, and what else the query holds. Raises ValueError, without the password."""
    parts = urlsplit(url)
    shown = url.replace(f":{parts.password}@", ":…@") if parts.password else url
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f"{shown!r}: a store's URL begins with redis://, rediss:// or unix://")
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    database = query.pop("db", "")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"{shown!r}: the port must be a number from 0 to 65535") from None
    if parts.scheme == "unix":
        if not parts.path:
            raise ValueError(f"{shown!r}: a unix socket needs a path, such as unix:///run/redis/redis.sock")
    elif len(parts.path) > 1:
        database = unquote(parts.path[1:])
    if not (database or "0").isdecimal():
        raise ValueError(f"{shown!r}: the database must be a number, such as redis://host:6379/0")
    return Address(
        host=parts.hostname or "127.0.0.1",
        port=port or 6379,
        path=unquote(parts.path) if parts.scheme == "unix" else None,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        database=int(database or 0),
        tls=_tls(query, shown) if parts.scheme == "rediss" else None,
    ), query


def _tls(query: dict[str, str], shown: str) -> ssl.SSLContext:
    authorities, certificate, key = (query.pop(name, None) for name in TLS_FILES)
    checks = query.pop("ssl_cert_reqs", "required")
    if checks not in ("required", "none"):
        raise ValueError(f"{shown!r}: ssl_cert_reqs is «required» or «none»")
    try:
        context = ssl.create_default_context(cafile=authorities)
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ValueError(f"{shown!r}: a file of certificates cannot be read: {error}") from None
    if checks == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
