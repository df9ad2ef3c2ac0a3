"""The transports for httpx, and their errors as httpx's own: `except httpx.HTTPError` catches them, too."""

try:
    import httpx
except ImportError as missing:
    raise ImportError("throttle.client.httpx needs httpx: pip install 'asgi-throttle[client]'") from missing

from throttle.client.httpx_attempt import Library
from throttle.client.transport import AsyncTransport, Transport

LIBRARY = Library(httpx)


class AsyncThrottledTransport(AsyncTransport, httpx.AsyncBaseTransport):
    library = LIBRARY


class ThrottledTransport(Transport, httpx.BaseTransport):
    library = LIBRARY
