"""The transports for httpx2, and their errors as httpx2's own: `except httpx2.HTTPError` catches them, too."""

try:
    import httpx2
except ImportError as missing:
    raise ImportError("throttle.client.httpx2 needs httpx2: pip install 'asgi-throttle[httpx2]'") from missing

from throttle.client.httpx_attempt import Library
from throttle.client.transport import AsyncTransport, Transport

LIBRARY = Library(httpx2)


class AsyncThrottledTransport(AsyncTransport, httpx2.AsyncBaseTransport):
    library = LIBRARY


class ThrottledTransport(Transport, httpx2.BaseTransport):
    library = LIBRARY
