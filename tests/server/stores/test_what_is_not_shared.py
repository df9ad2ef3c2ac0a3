"""What a shared store cannot do yet is refused when the site starts, in one line that says what to do."""

import pytest
from starlette.applications import Starlette

from throttle import Limits, ThrottleMiddleware


def test_the_modern_rules_under_load_are_refused_by_a_shared_store() -> None:
    def site(limits: Limits) -> ThrottleMiddleware:
        return ThrottleMiddleware(Starlette(), store="redis://127.0.0.1:1", limits=limits, reverse_dns=False)

    with pytest.raises(ValueError, match="share_hits=None"):
        site(Limits.modern())
    site(Limits.modern(share_hits=None, wide_share_hits=None, sleepers_per_network=None))
