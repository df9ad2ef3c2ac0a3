"""One HTTP/1.1 request on a connection of its own, from an address of the caller's own.

Plain asyncio and h11, since the crowd runs beside the site that it tests and must cost it little.
"""

import asyncio
import contextlib
import socket

import h11

from throttle.load.answer import Answer, read_answer
from throttle.load.crowd import Caller

LOOPBACK = "127.0.0.1"
BODY_BYTES_MAX = 16_000_000


def has_loopback_network() -> bool:
    """All of 127.0.0.0/8 is this machine's, as on Linux and Windows; elsewhere only 127.0.0.1 may be."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            return False
    return True


class Wire:
    """Sends requests to one site on the loopback.

    Each leaves from its caller's address. With `forwards`, all leave from 127.0.0.1 and name the caller's address in
    X-Forwarded-For, which the site must trust 127.0.0.1 to write.
    """

    def __init__(self, port: int, *, forwards: bool = False) -> None:
        self._port = port
        self._forwards = forwards

    async def __call__(self, caller: Caller, path: str) -> Answer:
        """The answer; a connection that cannot be made or breaks is a failure, not an exception."""
        try:
            reader, writer = await asyncio.open_connection(
                LOOPBACK, self._port, local_addr=(LOOPBACK if self._forwards else caller.address, 0)
            )
        except OSError as error:
            return Answer(failed=f"no connection: {error.strerror or error}")
        try:
            return await self._exchange(reader, writer, caller, path)
        except (OSError, h11.RemoteProtocolError) as error:
            return Answer(failed=f"broken off: {error}")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: Caller, path: str
    ) -> Answer:
        connection = h11.Connection(h11.CLIENT)
        headers = [("Host", f"{LOOPBACK}:{self._port}"), ("Accept", caller.accept), ("Connection", "close")]
        if caller.agent:
            headers.append(("User-Agent", caller.agent))
        if self._forwards:
            headers.append(("X-Forwarded-For", caller.address))
        request = connection.send(h11.Request(method="GET", target=path, headers=headers))
        writer.write((request or b"") + (connection.send(h11.EndOfMessage()) or b""))
        status, fields, body = 0, [], bytearray()
        while not isinstance(event := connection.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Response):
                status, fields = event.status_code, list(event.headers)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_BYTES_MAX:
                    return Answer(failed=f"an answer of more than {BODY_BYTES_MAX:,} bytes")
        return read_answer(status, fields, bytes(body))
