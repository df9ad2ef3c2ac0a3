"""A warning where a proxy that is not believed seems to stand in front of the site: all its people are one caller."""

import logging

from starlette.types import Scope

from throttle.server.rulebook import Rulebook

logger = logging.getLogger("throttle")


class UnbelievedProxy:
    """Looks at the first browsers that are refused, and warns once."""

    def __init__(self) -> None:
        self.left = 100
        """refused browsers to look at; behind a proxy the first already shows it"""

    def look(self, book: Rulebook, scope: Scope) -> None:
        """At one that was refused."""
        self.left -= 1
        if book.ignores_a_proxy(scope):
            self.left = 0
            logger.warning(
                "a browser was refused whose request carries a forwarding header that is not believed. If a proxy "
                "stands in front of this site, name it in trusted_proxies: until then all who come through it "
                "count as one caller."
            )
