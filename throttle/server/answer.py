"""Sends a refusal: over HTTP or a WebSocket's handshake, the prepared answer or one of the site's own."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from throttle.server.refusal import Field, Refusal, messages, required_fields

ResponseHook = Callable[[Scope, Refusal], Response | Awaitable[Response | None] | None]


async def answer(
    refusal: Refusal,
    scope: Scope,
    receive: Receive,
    send: Send,
    fields: Sequence[Field] = (),
    *,
    hook: ResponseHook | None = None,
) -> None:
    """The whole answer, with `fields` added; what `hook` draws, unless that is None."""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await receive()  # the connect; a close before the accept makes the server answer 403
            return await send({"type": "websocket.close", "code": 1013, "reason": refusal.title})
        await receive()
        send = _denial(send)
    if hook is not None:
        drawn = hook(scope, refusal)
        drawn = await drawn if inspect.isawaitable(drawn) else drawn
        if drawn is not None:
            return await drawn(scope, receive, _with_fields(send, [*required_fields(refusal), *fields]))
    start, body = messages(refusal, scope.get("method", "GET"), scope["headers"], fields)
    await send(start)
    await send(body)
    return None


def _with_fields(send: Send, fields: Sequence[Field]) -> Send:
    """Adds the fields that an answer lacks as it is sent: the response itself may be one for many refusals."""

    async def complete(message: Message) -> None:
        if message["type"].endswith("http.response.start"):
            present = {name for name, _ in message["headers"]} - {b"set-cookie"}  # a field that may stand twice
            missing = [field for field in fields if field[0] not in present]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return complete


def _denial(send: Send) -> Send:
    """An HTTP answer to a WebSocket's handshake (ASGI's extension «WebSocket Denial Response»)."""

    async def deny(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return deny
