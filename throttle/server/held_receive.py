"""An ASGI `receive` that can be watched for a hang-up while its request sleeps, and loses nothing of the body.

What arrives meanwhile is kept, up to a bound, and handed to the application in order.
"""

import asyncio
from collections import deque

from starlette.types import Message, Receive

KEPT_BYTES = 65_536
"""of a body; with that much kept, the rest stays in the socket and a hang-up goes unnoticed until the wait ends"""


class HeldReceive:
    """Wraps one request's `receive`; call it as such afterwards."""

    def __init__(self, receive: Receive, since: float) -> None:
        self.since = since
        """the clock's seconds when the sleep began"""
        self._receive = receive
        self._kept: deque[Message] = deque()
        self._pending: asyncio.Task[Message] | None = None

    async def hang_up(self) -> None:
        """Returns when the caller has hung up; may be cancelled without losing a message."""
        size = 0
        while size < KEPT_BYTES:
            message = await self._next()
            self._kept.append(message)
            if message["type"].endswith(".disconnect"):
                return
            size += len(message.get("body", b"")) + 1
        await asyncio.get_running_loop().create_future()

    async def __call__(self) -> Message:
        if self._kept:
            return self._kept.popleft()
        if self._pending is None:
            return await self._receive()
        return await self._next()

    async def _next(self) -> Message:
        # The receive goes on in a task of its own: cancelling it in the middle might lose what it had taken.
        if self._pending is None:
            self._pending = asyncio.ensure_future(_as_coroutine(self._receive))
        message = await asyncio.shield(self._pending)
        self._pending = None
        return message

    def close(self) -> None:
        """The request is over: nobody will ask for what is still pending."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None


async def _as_coroutine(receive: Receive) -> Message:
    return await receive()
