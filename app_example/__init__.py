"""Papers: a small social bookmarking site behind the throttle, on real data.

``uvicorn app_example:app`` serves it, with settings from the environment (``settings.py`` names them);
``create_app`` of ``site.py`` makes it with settings of the caller's. Importing this package does nothing yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    app: Starlette


def __getattr__(name: str) -> Starlette:
    """The site, made when a server first asks for it. Ends the process with one line if it cannot be."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from app_example.database import DatabaseError, prepare
    from app_example.settings import Settings
    from app_example.site import create_app

    try:
        settings = Settings.from_environment()
        prepare(settings.database)
        site = create_app(settings)
        # Else it is made when a request comes, and what is wrong with the throttle's settings is a 500 each time.
        site.middleware_stack = site.build_middleware_stack()
        globals()["app"] = site
    except (DatabaseError, ValueError) as error:
        raise SystemExit(f"app_example: {error}") from None
    return site
