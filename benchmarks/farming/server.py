"""The farm's protocol: one request at a time on each connection, the site chosen by its Host alone."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from benchmarks.farming.site import Site, response

STATS = "/_farm/stats"
HEAD_MAX = 64 * 1024


class Connection(asyncio.Protocol):
    """Serves as the host itself, and as a proxy: then the request's target is a whole URL."""

    def __init__(self, sites: Mapping[bytes, Site]) -> None:
        self._sites = sites
        self._received = b""
        self._is_busy = False
        self._method = b""

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > HEAD_MAX:
                self._transport.close()
            return
        head, self._received = self._received[:end], self._received[end + 4 :]
        self._is_busy = True
        line, _, fields = head.partition(b"\r\n")
        method, _, target = line.rpartition(b" ")[0].partition(b" ")
        path = target.decode("latin-1")
        if not path.startswith("/"):
            path = "/" + path.partition("://")[2].partition("/")[2]
        site = self._sites.get(_host(fields))
        if path == STATS:
            truth = [site.truth() for site in dict.fromkeys(self._sites.values())]
            self._send(response(method, 200, b"", json.dumps(truth).encode(), b"application/json"))
        elif site is None or method not in (b"GET", b"HEAD"):
            self._send(response(method, 400, b"", b"no such host, or no such method\n"))
        else:
            site.answer(method, path, self._send)

    def _send(self, data: bytes) -> None:
        if self._transport.is_closing():  # who asked is gone
            return
        self._transport.write(data)
        self._is_busy = False
        if self._received:
            self._next()


def _host(fields: bytes) -> bytes:
    """Without its port."""
    start = fields.find(b"Host: ")
    if start < 0:
        start = fields.lower().find(b"host: ")
        if start < 0:
            return b""
    end = fields.find(b"\r\n", start)
    return fields[start + 6 : end if end >= 0 else None].partition(b":")[0].lower()
