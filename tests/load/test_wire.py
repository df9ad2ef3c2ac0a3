"""One request over a real socket on the loopback, against servers that behave in every way."""

import asyncio

import pytest

from throttle.load.crowd import Caller
from throttle.load.wire import Wire, has_loopback_network

CALLER = Caller("people", "127.0.1.7", "an agent", "text/html")
own_addresses = pytest.mark.skipif(not has_loopback_network(), reason="only 127.0.0.1 is to be had here")


def exchange(reply: bytes, caller: Caller = CALLER, **options):
    """The answer to one request that a server answers with these bytes; the peer's address; what it was sent."""

    async def run():
        seen = []

        async def answer(reader, writer):
            seen.append((writer.get_extra_info("peername")[0], await reader.readuntil(b"\r\n\r\n")))
            writer.write(reply)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            wire = Wire(server.sockets[0].getsockname()[1], **options)
            answered = await wire(caller, "/page"), *seen[0]
            wire.close()
            return answered

    return asyncio.run(run())


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@own_addresses
def test_each_caller_asks_from_its_own_address():
    answer, peer, request = exchange(OK)
    assert (answer.body, peer) == (b"hi", "127.0.1.7")
    assert b"x-forwarded-for" not in request.lower()


def test_with_one_address_only_callers_name_theirs_in_x_forwarded_for():
    answer, peer, request = exchange(OK, forwards=True)
    assert answer.is_served
    assert peer == "127.0.0.1"
    assert b"x-forwarded-for: 127.0.1.7\r\n" in request.lower()


def test_a_caller_without_a_name_sends_no_agent():
    _, _, request = exchange(OK, Caller("rude", "127.0.0.1", ""), forwards=True)
    assert b"user-agent" not in request.lower()


@pytest.mark.parametrize(
    "reply",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi", b"\x00\xff not http\r\n\r\n", b"HTTP/1.1 999\r\n\r\n"],
)
def test_an_answer_that_breaks_off_or_is_none_is_a_failure(reply):
    answer, _, _ = exchange(reply, forwards=True)
    assert answer.failed is not None


def test_nobody_there_is_a_failure():
    async def run():
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return await Wire(port, forwards=True)(CALLER, "/")

    assert asyncio.run(run()).failed.startswith("no connection")


def several(replies, paths, *, closes=False):
    """What comes of these requests of one caller, one after the other, and on how many connections they went."""

    async def run():
        connections = []

        async def answer(reader, writer):
            connections.append(asyncio.current_task())
            while await reader.readline():
                await reader.readuntil(b"\r\n\r\n")
                reply = replies.pop(0)
                writer.write(reply)
                if closes or not reply:
                    break
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            wire = Wire(server.sockets[0].getsockname()[1], forwards=True)
            answers = []
            for path in paths:
                answers.append(await wire(CALLER, path))
                for _ in range(5 * closes):  # the site lets go, and we hear of it; or of nothing yet
                    await asyncio.sleep(0)
            wire.close()
            await asyncio.gather(*connections, return_exceptions=True)
            return answers, len(connections)

    return asyncio.run(run())


def test_a_caller_keeps_its_connection():
    answers, connections = several([OK, OK, OK], ["/a", "/b", "/c"])
    assert ([answer.body for answer in answers], connections) == ([b"hi"] * 3, 1)


def test_a_connection_that_the_site_let_go_of_meanwhile_is_made_anew():
    answers, connections = several([OK, OK, OK], ["/a", "/b", "/c"], closes=True)
    assert ([answer.body for answer in answers], connections) == ([b"hi"] * 3, 3)


def test_a_connection_that_ends_just_as_the_next_request_comes_is_made_anew_once():
    answers, connections = several([OK, b"", OK], ["/a", "/b"])
    assert ([answer.body for answer in answers], connections) == ([b"hi"] * 2, 2)
    answers, connections = several([OK, b"", b""], ["/a", "/b"])
    assert ([answer.failed is not None for answer in answers], connections) == ([False, True], 2)


def test_a_connection_is_not_kept_after_an_answer_that_ends_with_it():
    until_end = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    answers, connections = several([until_end, OK], ["/a", "/b"])
    assert ([answer.body for answer in answers], connections) == ([b"hi"] * 2, 2)
