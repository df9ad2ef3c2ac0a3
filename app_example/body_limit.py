"""No request may send more than a form or a post needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import HTTPException  # FastAPI lets its own pass where it reads a body; Starlette's it would turn into 400

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BYTES_MAX = 128 * 1024


class BodyLimit:
    """Ends the reading of a body with the answer 413 as soon as it is larger than it may be."""

    def __init__(self, app: ASGIApp, bytes_max: int = BYTES_MAX) -> None:
        self.app = app
        self.bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = self.bytes_max

        async def receive_within_limit() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, f"A request may have {self.bytes_max // 1024} kB.")
            return message

        await self.app(scope, receive_within_limit if scope["type"] == "http" else receive, send)
