"""The policy as sentences: nothing that an operator sets goes unsaid."""

from dataclasses import fields, replace
from typing import Any

import pytest

from throttle import Delay, Limits, PathLimits
from throttle.operate.sentences import policy_in_sentences
from throttle.server.settings import Settings

OTHER: dict[str, Any] = {
    "lone_crawler_seconds": 31.0,
    "all_crawlers_seconds": None,
    "stack_seconds": 16.0,
    "stack_hits": 11,
    "stack_exempt_agents": ("Reader",),
    "load_max": 16,
    "sleeping_max": 0,
    "defer_delay": Delay(maximum=20),
    "wait_told": Delay(maximum=40),
    "paused": True,
    "pause_early": True,
    "pause_exempt": ("192.0.2.1",),
    "pause_seconds": 60.0,
    "path_limits": (PathLimits("/search", Limits()),),
    "enforce": False,
    "trusted_proxies": ("10.0.0.0/8",),
    "forwarded_header": "x-real-ip",
    "ipv6_prefix": 56,
    "exempt_paths": ("/up",),
    "exempt_prefixes": ("/files",),
    "exempt_preflights": False,
    "exempt_callers": ("192.0.2.1",),
    "exempt_agents": ("Monitor",),
    "banned_callers": ("192.0.2.2",),
    "banned_agents": ("BadBot",),
    "api_paths": ("/api",),
    "crawlers": ("Harvester",),
    "bots": ("Script",),
    "browsers": ("Kiosk",),
    "status": 429,
    "rate_limit_fields": False,
    "count_streams": True,
    "release_at": "start",
    "need_fetch_metadata": True,
    "verify_crawlers": False,
    "agent_table": "agents.txt",
    "crawler_ranges": "lists",
    "reverse_dns": False,
    "load_is_asked_last": True,
    "sleepers_per_network": 2,
    "network_hits": 300,
    "network_parts": 3000,
    "network_bot_hits": 60,
    "share_hits": 5,
    "wide_share_hits": 20,
    "parts_hits": 100,
    "acquaintance_visits": 4,
    "acquaintance_apart_seconds": 20.0,
    "acquaintance_seconds": 3600.0,
    "cookies": False,
    "cookie_secret": "a secret of sixteen letters",
    "network_prefixes": (20, 40),
    "wide_network_prefixes": (12, 28),
}
"""for each setting, a value that is not its default"""
USED = Limits(parts_hits=50, acquaintance_visits=3, network_hits=200, verify_crawlers=True, cookies=True)
IN_USE = Settings(trusted_proxies=("192.0.2.0/24",), limits=USED)
"""where each setting matters"""


@pytest.mark.parametrize("name", [field.name for field in fields(Settings) if field.name != "limits"])
def test_a_setting_changes_what_is_said(name: str) -> None:
    before, after = IN_USE, replace(IN_USE, **{name: OTHER[name]})
    assert list(policy_in_sentences(before)) != list(policy_in_sentences(after))


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_a_limit_changes_what_is_said(name: str) -> None:
    before, after = Settings(limits=USED), Settings(limits=replace(USED, **{name: OTHER[name]}))
    assert list(policy_in_sentences(before)) != list(policy_in_sentences(after))


@pytest.mark.parametrize("delay", [Delay(multiplier=2), Delay(adjustment=1), Delay(minimum=1), Delay(maximum=31)])
@pytest.mark.parametrize("name", ["defer_delay", "wait_told"])
def test_each_number_of_a_delay_changes_what_is_said(name: str, delay: Delay) -> None:
    before, after = Settings(), Settings(limits=Limits(**{name: delay}))  # type: ignore[arg-type]
    assert list(policy_in_sentences(before)) != list(policy_in_sentences(after))


def test_a_named_store_is_said() -> None:
    assert "The counts are kept in the store 'memory'." in policy_in_sentences(Settings(), "memory")


@pytest.mark.parametrize("limits", [Limits(load_max="auto"), Limits.modern(load_max="auto")])
def test_a_limit_that_is_found_is_told_without_a_number_of_the_sites(limits: Limits) -> None:
    said = " ".join(policy_in_sentences(Settings(limits=limits)))
    assert "How many requests that are, each process finds out" in said
    assert "other requests run" not in said
    assert "auto" not in said
