"""Many hosts on loopback in a process of their own, each at an address of its own, that answer at once.

    python -m benchmarks.loopback_farm 1000

prints the port and answers on 127.0.1.0 to 127.0.4.231 until its standard input ends.
"""

import asyncio
import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator

ANSWER = b"\r\n".join(
    [
        b"HTTP/1.1 200 OK",
        b"Date: Fri, 20 Nov 2026 12:00:00 GMT",
        b"Server: farm",
        b"Content-Type: text/html; charset=utf-8",
        b"Content-Length: 1000",
        b"Cache-Control: max-age=60",
        b"",
        b"x" * 1000,
    ]
)


class Host(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            self._received = self._received[end + 4 :]
            self._transport.write(ANSWER)


def addresses(hosts: int) -> list[str]:
    return [f"127.0.{1 + turn // 256}.{turn % 256}" for turn in range(hosts)]


def allow_files() -> None:
    """As many sockets as the machine lets a process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(hosts: int) -> None:
    loop = asyncio.get_running_loop()
    first, *others = addresses(hosts)
    server = await loop.create_server(Host, first, 0)
    port = server.sockets[0].getsockname()[1]
    servers = [server, *[await loop.create_server(Host, address, port) for address in others]]
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()


@contextlib.contextmanager
def farm(hosts: int) -> Iterator[list[str]]:
    """The URLs of so many hosts, while they stand."""
    command = [sys.executable, "-m", "benchmarks.loopback_farm", str(hosts)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield [f"http://{address}:{port}/" for address in addresses(hosts)]
        finally:
            process.communicate("")


if __name__ == "__main__":
    allow_files()
    asyncio.run(serve(int(sys.argv[1])))
