"""A crawl's own connections: what is kept, what is not, and that errors are the library's. Over real sockets."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import uvloop

from tests.crawl.site import answer, serving
from tests.crawl.test_job import crawling
from throttle.crawl import direct, stream
from throttle.crawl.direct import DirectTransport, DirectTransports, is_direct
from throttle.crawl.stream import BUFFERED_MAX, Stream, connected

PATIENCE = {"connect": 5.0, "read": 5.0}
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def fetched(transport: DirectTransport, url: str, method: str = "GET", **told: Any) -> tuple[int, bytes]:
    request = httpx2.Request(method, url, extensions={"timeout": PATIENCE | told})
    response = await transport.handle_async_request(request)
    try:
        return response.status_code, b"".join([chunk async for chunk in response.stream])
    finally:
        await response.stream.aclose()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  # nobody would tell
        await asyncio.sleep(0)


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    server = await asyncio.start_server(closing, "127.0.0.1", 0, ssl=tls)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{'https' if tls else 'http'}://{host}:{port}/"


def saying(data: bytes, *, asks_first: bool = True) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if asks_first:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()

    return serve


@crawling
async def test_one_connection_serves_one_request_after_the_other() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with listening(serve) as url:
        transport = DirectTransports(httpx2)()
        for _ in range(3):
            assert await fetched(transport, url) == (200, b"ok")
        assert connections == 1
        await asyncio.gather(*(fetched(transport, url) for _ in range(2)))
        assert connections == 2, "two at once need two"
        await transport.aclose()


@pytest.mark.parametrize("last", [b"HTTP/1.1 200 OK\r\n\r\nok", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"])
def test_a_connection_that_the_server_has_closed_is_not_used_again(last: bytes) -> None:
    @crawling
    async def run() -> None:
        async with listening(saying(last)) as url:
            transport = DirectTransports(httpx2)()
            for _ in range(3):
                assert await fetched(transport, url) == (200, b"ok")
            await transport.aclose()

    run()


@crawling
async def test_a_connection_that_says_what_nobody_asked_or_was_idle_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        await told.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await reader.read()

    async with listening(serve) as url:
        transport = DirectTransports(httpx2)()
        assert await fetched(transport, url) == (200, b"ok")
        told.set()
        await until(lambda: not transport._idle[0].stream.is_silent)
        told.clear()
        assert await fetched(transport, url) == (200, b"ok")
        monkeypatch.setattr(direct, "IDLE_SECONDS", 0.0)
        assert await fetched(transport, url) == (200, b"ok")
        assert len(transport._open) == 1
        await transport.aclose()


@crawling
async def test_head_brings_no_body_and_what_brings_one_is_sent_with_it() -> None:
    async with serving() as site:
        site.pages["/"] = answer(body=b"x" * 10)
        transport = DirectTransports(httpx2)()
        assert await fetched(transport, site.url("/"), "HEAD") == (200, b"")
        request = httpx2.Request("POST", site.url("/post"), content=b"")
        response = await transport.handle_async_request(request)
        assert response.status_code == 200
        assert [asked.method for asked in site.log] == ["HEAD", "POST"]
        await transport.aclose()


@pytest.mark.parametrize("library", [httpx2, httpx])
@pytest.mark.parametrize(
    ("serve", "error"),
    [
        (saying(b""), "RemoteProtocolError"),
        (saying(b"nonsense\r\n\r\n"), "RemoteProtocolError"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), "RemoteProtocolError"),
        (saying(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000), "RemoteProtocolError"),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_library(library: Any, serve: Serve, error: str) -> None:
    @crawling
    async def run() -> None:
        async with listening(serve) as url:
            transport = DirectTransports(library)()
            with pytest.raises(getattr(library, error)):
                await fetched(transport, url)
            assert not transport._idle
            await transport.aclose()
            assert not transport._open

    run()


@crawling
async def test_no_connection_and_no_answer_are_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        transport = DirectTransports(httpx2)()
        with pytest.raises(httpx2.ReadTimeout):
            await fetched(transport, f"http://127.0.0.1:{port}/", read=0.01)
        with pytest.raises(httpx2.ConnectTimeout):
            await fetched(transport, f"http://127.0.0.1:{port}/", connect=-1.0)
        await transport.aclose()
    with pytest.raises(httpx2.ConnectError):
        await fetched(transport, f"http://127.0.0.1:{port}/")


@crawling
async def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = DirectTransports(httpx2)()
        asking = asyncio.create_task(fetched(transport, f"http://127.0.0.1:{silent.getsockname()[1]}/"))
        await until(lambda: bool(transport._open))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not transport._open


@crawling
async def test_an_error_that_the_library_has_no_name_for_passes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise ValueError("of ours")

    async with serving() as site:
        transport = DirectTransports(httpx2)()
        monkeypatch.setattr(direct._Connection, "send", broken)
        with pytest.raises(ValueError, match="of ours") as raised:
            await fetched(transport, site.url("/"))
        assert raised.value.__cause__ is None
        assert not transport._open


@crawling
async def test_who_reads_slowly_makes_the_server_wait() -> None:
    sent, length = 0, 64 * BUFFERED_MAX

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        while sent < length:
            writer.write(b"x" * BUFFERED_MAX)
            sent += BUFFERED_MAX
            await writer.drain()

    async with listening(serve) as url:
        transport = DirectTransports(httpx2)()
        request = httpx2.Request("GET", url, extensions={"timeout": PATIENCE})
        response = await transport.handle_async_request(request)
        (connection,) = transport._open
        await until(lambda: connection.stream._is_paused)
        assert connection.stream._buffered < 4 * BUFFERED_MAX
        assert sum([len(chunk) async for chunk in response.stream]) == length
        await response.stream.aclose()
        await transport.aclose()


@crawling
async def test_of_a_names_addresses_the_first_that_answers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\nok")) as url:
        port = int(url.rpartition(":")[2].rstrip("/"))
        asked: list[str] = []
        waits = asyncio.Event()

        async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
            kind = socket.SOCK_STREAM
            return [
                (socket.AF_INET, kind, 6, "", ("127.0.0.2", port)),  # nobody listens
                (socket.AF_INET, kind, 6, "", ("127.0.0.3", port)),  # never answers
                (socket.AF_INET, kind, 6, "", ("127.0.0.1", port)),
            ]

        is_real = stream._socket

        async def connecting(address: Any) -> socket.socket:
            asked.append(address[4][0])
            if address[4][0] == "127.0.0.3":
                await waits.wait()
            return await is_real(address)

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(stream, "_socket", connecting)
        monkeypatch.setattr(stream, "NEXT_ADDRESS_AFTER", 0.01)
        found = await connected("a.name", port, None)
        assert found._transport.get_extra_info("peername") == ("127.0.0.1", port)
        assert asked == ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
        found.close()


@crawling
async def test_a_name_none_of_whose_addresses_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{number}", port)) for number in (1, 2)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    with pytest.raises(ConnectionRefusedError):
        await connected("a.name", port, None)


def test_the_families_of_a_names_addresses_take_turns() -> None:
    four, six = [(socket.AF_INET, 1, 6, "", one) for one in "ab"], [(socket.AF_INET6, 1, 6, "", one) for one in "xyz"]
    assert "".join(one[4] for one in stream._in_turn([*six, *four])) == "xaybz"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For 127.0.0.1, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=farm"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_certificate_is_verified(certificate: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def run() -> None:
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(certificate)
        trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
        async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\nok"), server) as url:
            with pytest.raises(httpx2.ConnectError, match="verify failed"):
                await fetched(DirectTransports(httpx2)(), url)
            transport = DirectTransport(httpx2, lambda: trusting)
            assert await fetched(transport, url) == (200, b"ok")
            with pytest.raises(httpx2.ConnectError, match="localhost"):
                await fetched(transport, url.replace("127.0.0.1", "localhost"))
            await transport.aclose()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(run(), 30))


def test_where_the_environment_names_a_proxy_the_library_asks_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert is_direct()
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    assert not is_direct()


def test_a_stream_that_broke_tells_its_error() -> None:
    @crawling
    async def run() -> None:
        broken = Stream()
        broken.connection_lost(ConnectionResetError("reset"))
        with pytest.raises(ConnectionResetError):
            await broken.read(1.0)

    run()
