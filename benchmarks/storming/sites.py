"""The sites under the storm, and what stands before them; `app` is the one that the environment names.

The made sites' pages cost so many milliseconds of one core, in one of forty threads, without the interpreter's lock
(key stretching, which releases it), so a core more would serve twice as many. Only «python» holds it.

STORM_SITE       cheap (5 ms a page), dear (100 ms), mixed (nine cheap to one dear), demo (the demo site), loop (20 ms
                 a page, in the event loop: the handlers are coroutines), python (20 ms in the interpreter)
STORM_SUBJECT    bare, slowapi, limits, semaphore, ours, people (nobody else is served)
STORM_LIMITS     for ours, a TOML table of `Limits`: 'preset = "modern"\nload_max = 3'
STORM_CORES      the cores of this process, with commas
STORM_SPEED      rounds of key stretching a second that the pages' cost is reckoned with
"""

import hashlib
import os
import time
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from throttle import Limits, ThrottleMiddleware
from throttle.server.stores.memory import MemoryStore

HITS, SECONDS = 10, 15
"""of one address: the page's hit stack, which the peers keep, too"""
IN_FLIGHT = 15
"""for the semaphore: the page's `load_max`"""
CHEAP, IN_LOOP, INTERPRETED, DEAR = 0.005, 0.02, 0.02, 0.1

App = Callable[[Any, Any, Any], Any]


@cache
def rounds_per_second() -> float:
    """How fast this machine stretches keys; the best of several, as a busy machine only slows.

    Measured once for all sites that are compared: from second to second a machine's own speed may be half or twice.
    """
    if told := os.environ.get("STORM_SPEED"):
        return float(told)
    best = 0.0
    for _ in range(10):
        began = time.thread_time()
        hashlib.pbkdf2_hmac("sha256", b"page", b"salt", 5_000)
        best = max(best, 5_000 / (time.thread_time() - began))
    return best


def page_of(seconds: float) -> Callable[[Request], PlainTextResponse]:
    rounds = max(1, int(seconds * rounds_per_second()))

    def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse(hashlib.pbkdf2_hmac("sha256", b"page", b"salt", rounds).hex() * 30)

    return page


def interpreted(request: Request) -> PlainTextResponse:
    """Whose computing nobody else's can go beside."""
    end = time.thread_time() + INTERPRETED
    while time.thread_time() < end:
        sum(range(1000))
    return PlainTextResponse("interpreted " * 200)


def in_loop() -> Starlette:
    """Where everybody waits for who computes."""
    compute = page_of(IN_LOOP)

    async def page(request: Request) -> PlainTextResponse:
        return compute(request)

    return Starlette(routes=[Route("/", page), Route("/page/{number}", page), Route("/dear/{number}", page)])


def made(site: str) -> Starlette:
    if site == "loop":
        return in_loop()
    cheap, dear = (interpreted, interpreted) if site == "python" else (page_of(CHEAP), page_of(DEAR))
    front = dear if site == "dear" else cheap
    other = cheap if site == "cheap" else dear
    return Starlette(routes=[Route("/", front), Route("/page/{number}", front), Route("/dear/{number}", other)])


def demo(**options: Any) -> Starlette:
    from app_example.database import prepare
    from app_example.settings import Settings
    from app_example.site import create_app

    settings = Settings.from_environment()
    prepare(settings.database)
    return create_app(settings, **options)


# What stands before a site


def ours(app: Starlette, told: str) -> None:
    fields: dict[str, Any] = tomllib.loads(told)
    make = Limits.modern if fields.pop("preset", "connotea") == "modern" else Limits
    app.add_middleware(ThrottleMiddleware, limits=make(**fields))


def people_only(app: Starlette) -> None:
    """Each machine is refused, by ours, for want of room: no gate can do more for people than this."""
    store = MemoryStore()
    store.admit(store.prepare([]), (0, 0, 0), 0, 0)  # one that never ends
    app.add_middleware(ThrottleMiddleware, limits=Limits(load_max=1, sleeping_max=0), store=store)


class Semaphore:
    """The usual limit on open requests: who comes when it is full is refused, whoever it is."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.running = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if self.running >= IN_FLIGHT:
            return await refuse(send, 503)
        self.running += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.running -= 1
        return None


class PerAddress:
    """The engine of the package limits, behind a gate as thin as can be."""

    def __init__(self, app: App) -> None:
        import limits

        self.app = app
        self.hit = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage()).hit
        self.limit = limits.RateLimitItemPerSecond(HITS, SECONDS)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self.hit(self.limit, scope["client"][0]):
            return await refuse(send, 429)
        return await self.app(scope, receive, send)


async def refuse(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def slowapi(app: Starlette) -> None:
    import slowapi
    from slowapi.middleware import SlowAPIASGIMiddleware
    from slowapi.util import get_remote_address

    app.add_middleware(SlowAPIASGIMiddleware)
    app.state.limiter = slowapi.Limiter(
        key_func=get_remote_address, default_limits=[f"{HITS} per {SECONDS} second"], strategy="moving-window"
    )


def built() -> Starlette:
    """The application that the environment names."""
    site, subject = os.environ["STORM_SITE"], os.environ["STORM_SUBJECT"]
    app = demo(throttled=False) if site == "demo" else made(site)
    match subject:
        case "ours":
            ours(app, os.environ["STORM_LIMITS"])
        case "people":
            people_only(app)
        case "semaphore":
            app.add_middleware(Semaphore)
        case "limits":
            app.add_middleware(PerAddress)
        case "slowapi":
            slowapi(app)
    app.middleware_stack = app.build_middleware_stack()
    return app


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    if hasattr(os, "sched_setaffinity") and os.environ.get("STORM_CORES"):
        os.sched_setaffinity(0, {int(core) for core in os.environ["STORM_CORES"].split(",")})
    return built()


PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    site: {
        "pages": ("/", *(f"/page/{number}" for number in range(50))),
        "feeds": ("/page/1",),
        "api": ("/page/2",),
        "dear": tuple(f"/dear/{number}" for number in range(50)),
    }
    for site in ("cheap", "dear", "mixed", "loop", "python")
}
