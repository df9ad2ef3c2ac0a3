"""A site on loopback that speaks HTTP/2, with TLS or without, and takes 10 ms for each answer."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import h2.config
import h2.connection
import h2.events


class Http2Site:
    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self.port = 0
        self.connections = 0
        self.open = 0
        self.open_most = 0
        self.statuses: list[int] = []  # to answer with, then 200
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    assert event.stream_id is not None
                    self.tasks.add(asyncio.create_task(self._answer(connection, event.stream_id, writer)))
            writer.write(connection.data_to_send())

    async def _answer(
        self, connection: h2.connection.H2Connection, stream_id: int, writer: asyncio.StreamWriter
    ) -> None:
        self.open += 1
        self.open_most = max(self.open_most, self.open)
        await asyncio.sleep(0.01)
        self.open -= 1
        status = self.statuses.pop(0) if self.statuses else 200
        connection.send_headers(stream_id, [(":status", str(status)), ("content-length", "5")])
        connection.send_data(stream_id, b"hello", end_stream=True)
        writer.write(connection.data_to_send())


@contextlib.asynccontextmanager
async def http2_site(tls: ssl.SSLContext | None = None) -> AsyncIterator[Http2Site]:
    opened = Http2Site(tls)
    server = await asyncio.start_server(opened.connected, "127.0.0.1", 0, ssl=tls)
    opened.port = server.sockets[0].getsockname()[1]
    try:
        yield opened
    finally:
        server.close()
        for task in opened.tasks:
            task.cancel()
        await asyncio.gather(*opened.tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was closed is told so
