"""Is a crawler who it says it is, and what follows from the answer. All addresses and lists are made up."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import GOOGLEBOT, ask
from tests.server.resolver import Zones
from tests.server.site import site
from tests.virtual_clock import in_virtual_time, now, run
from throttle import Limits
from throttle.server.agents import CallerClass, classify
from throttle.server.crawler_operators import LISTS, OPERATORS, Operator
from throttle.server.evidence import Finding
from throttle.server.policy import handle_request, wake_rank
from throttle.server.rule import Deferred, Hashes, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.stores.memory import MemoryStore
from throttle.server.verify import OTHERS_MAX, Verifier

GOOGLE = next(one for one in OPERATORS if one.name == "Google")
OPENAI = next(one for one in OPERATORS if one.name == "OpenAI")
FOR_USERS = next(one for one in OPERATORS if one.name == "OpenAI, for users")
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
GENUINE, FORGER, FORGER_2 = "192.0.2.1", "198.51.100.66", "198.51.100.67"
MODERN = Limits(verify_crawlers=True)


def zones() -> Zones:
    made = Zones()
    made.host(GENUINE, "crawl-192-0-2-1.googlebot.com")
    made.host("2001:db8:0:1::7", "crawl-7.googlebot.com")
    made.host(FORGER, "crawl-66.evilgooglebot.com")
    made.reverse[FORGER_2] = ["crawl-192-0-2-1.googlebot.com"]  # a forged reverse zone
    return made


async def settled(verifier: Verifier, operator: Operator, address: str) -> Finding:
    """What is known a while after the first question."""
    verifier(operator, address)
    await asyncio.sleep(5)
    return verifier(operator, address)


def lists(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name.replace('_', '-')}.json").write_text(text)
    return directory


OPENAIS = {"gptbot": '["192.0.2.0/28"]', "oai_searchbot": '["192.0.2.64/28"]', "chatgpt_user": '["192.0.2.128/28"]'}


# The table of operators


def test_every_agent_of_an_operator_is_a_name_that_the_classifier_gives() -> None:
    for operator in OPERATORS:
        for agent in operator.agents:
            found = classify(f"Mozilla/5.0 (compatible; {agent}/1.0)".encode())
            assert found.caller_class is CallerClass.KNOWN_CRAWLER
            assert (found.crawler or "").lower() == agent


@pytest.mark.parametrize("agent", ["YandexBot/3.0", "Pinterestbot/1.0", "Mozilla/5.0 (compatible; YandexBot/3.0)"])
def test_a_crawler_has_its_operator_without_the_address_that_it_usually_tells(agent: str) -> None:
    assert Verifier().operator_of(classify(agent.encode()).crawler) is not None


def test_each_operator_can_be_checked_and_no_agent_has_two() -> None:
    agents = [agent for operator in OPERATORS for agent in operator.agents]
    assert len(agents) == len(set(agents))
    assert all(operator.hosts or operator.lists for operator in OPERATORS)
    assert {name for operator in OPERATORS for name in operator.lists} == set(LISTS)
    for host in (host for operator in OPERATORS for host in operator.hosts):
        start, star, end = host.partition("*")
        assert star
        assert end.startswith(".")
        assert "." not in start


def test_a_crawler_that_no_rule_knows_has_no_operator() -> None:
    verifier = Verifier()
    assert verifier.operator_of("Baiduspider") is None
    assert verifier.operator_of("unlisted crawler") is None
    assert verifier.operator_of("-") is None
    assert verifier.operator_of(None) is None
    assert verifier.operator_of("GOOGLEBOT") is GOOGLE  # an operator's own list may write it otherwise


# The verdict


@in_virtual_time
async def test_by_dns_a_crawler_is_unknown_at_first_and_then_verified_or_forged() -> None:
    verifier = Verifier(resolver=zones(), clock=now)
    assert verifier(GOOGLE, GENUINE) is Finding.UNKNOWN
    assert await settled(verifier, GOOGLE, GENUINE) is Finding.VERIFIED
    assert await settled(verifier, GOOGLE, "2001:db8:0:1::7") is Finding.VERIFIED
    assert await settled(verifier, GOOGLE, "2001:db8:0:1::8") is Finding.FORGED
    assert await settled(verifier, GOOGLE, FORGER) is Finding.FORGED
    assert await settled(verifier, GOOGLE, FORGER_2) is Finding.FORGED


@pytest.mark.parametrize(
    ("address", "seconds"),
    [(GENUINE, 86_400), (FORGER, 3_600), ("203.0.113.1", 60)],
)
def test_an_answer_is_remembered_a_day_if_verified_an_hour_if_forged_a_minute_if_there_was_none(
    address: str, seconds: int
) -> None:
    @in_virtual_time
    async def story() -> None:
        dns = zones()
        dns.delay = 0
        dns.reverse["203.0.113.1"] = OSError("no answer")
        verifier = Verifier(resolver=dns, clock=now)
        await settled(verifier, GOOGLE, address)
        asked = len(dns.asked)
        await asyncio.sleep(seconds - 5.1)
        await settled(verifier, GOOGLE, address)
        assert len(dns.asked) in (asked, 2 * asked)  # the second look is past the end
        await asyncio.sleep(5)
        assert len(dns.asked) == 2 * asked

    story()


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "fd00::1", "fe80::1", "::1", "unknown", "", "x" * 64])
def test_of_an_address_that_is_not_the_internets_nothing_is_known_nor_asked(address: str) -> None:
    @in_virtual_time
    async def story() -> None:
        dns = zones()
        assert await settled(Verifier(resolver=dns, clock=now), GOOGLE, address) is Finding.UNKNOWN
        assert dns.asked == []

    story()


def test_by_lists_whoever_is_in_one_of_the_operators_is_verified_and_who_is_in_none_is_forged(tmp_path: Path) -> None:
    verifier = Verifier(lists(tmp_path, **OPENAIS))
    for address in ("192.0.2.1", "192.0.2.65", "192.0.2.129", "::ffff:192.0.2.1"):
        assert verifier(OPENAI, address) is Finding.VERIFIED
    assert verifier(OPENAI, "192.0.2.16") is Finding.FORGED
    assert verifier(OPENAI, "2001:db8::1") is Finding.FORGED


def test_nobody_is_forged_while_a_list_is_missing_or_none_was_named(tmp_path: Path) -> None:
    some = {name: text for name, text in OPENAIS.items() if name != "oai_searchbot"}
    verifier = Verifier(lists(tmp_path, **some))
    assert verifier(OPENAI, "192.0.2.1") is Finding.VERIFIED
    assert verifier(OPENAI, FORGER) is Finding.UNKNOWN
    assert Verifier()(OPENAI, FORGER) is Finding.UNKNOWN
    assert Verifier(tmp_path / "nowhere")(OPENAI, FORGER) is Finding.UNKNOWN


def test_what_fetches_for_a_user_is_never_forged(tmp_path: Path) -> None:
    verifier = Verifier(lists(tmp_path, **OPENAIS))
    assert verifier(FOR_USERS, "192.0.2.129") is Finding.VERIFIED
    assert verifier(FOR_USERS, FORGER) is Finding.UNKNOWN


@in_virtual_time
async def test_what_may_ask_from_elsewhere_is_never_forged_by_dns_either() -> None:
    elsewhere = Operator("Elsewhere", ("elsewhere",), hosts=("*.googlebot.com",), is_elsewhere_too=True)
    verifier = Verifier(resolver=zones(), operators=[elsewhere], clock=now)
    assert await settled(verifier, elsewhere, FORGER) is Finding.UNKNOWN
    assert await settled(verifier, elsewhere, GENUINE) is Finding.VERIFIED


@in_virtual_time
async def test_a_list_verifies_at_once_and_dns_has_the_last_word_on_who_is_in_none(tmp_path: Path) -> None:
    dns = zones()
    directory = lists(tmp_path, google_common_crawlers='["203.0.113.0/24"]', google_special_crawlers='["192.0.2.99"]')
    verifier = Verifier(directory, resolver=dns, clock=now)
    assert verifier(GOOGLE, "203.0.113.5") is Finding.VERIFIED
    assert verifier(GOOGLE, "192.0.2.99") is Finding.VERIFIED
    assert dns.asked == []
    assert await settled(verifier, GOOGLE, GENUINE) is Finding.VERIFIED  # in no list, and Google's by its name
    assert await settled(verifier, GOOGLE, FORGER) is Finding.FORGED


def test_a_list_that_gains_an_address_takes_back_that_it_was_forged(tmp_path: Path) -> None:
    clock = itertools.count(0.0, 30.0)
    verifier = Verifier(lists(tmp_path, **OPENAIS), clock=lambda: next(clock))
    assert verifier(OPENAI, "203.0.113.1") is Finding.FORGED
    lists(tmp_path, gptbot='["192.0.2.0/28", "203.0.113.1"]')
    verifier.look()
    assert verifier(OPENAI, "203.0.113.1") is Finding.VERIFIED


def test_the_lists_are_looked_at_again_after_a_minute_and_not_sooner(tmp_path: Path) -> None:
    seconds = [0.0]
    verifier = Verifier(lists(tmp_path, **OPENAIS), clock=lambda: seconds[0])
    lists(tmp_path, gptbot='["192.0.2.0/28", "203.0.113.1"]')
    seconds[0] = 59.9
    verifier(OPENAI, GENUINE)
    assert verifier._looking is None
    seconds[0] = 60.0
    verifier(OPENAI, GENUINE)
    assert verifier._looking is not None
    verifier._looking.join()
    assert verifier(OPENAI, "203.0.113.1") is Finding.VERIFIED


@in_virtual_time
async def test_a_flood_of_forgers_fills_no_memory_and_pushes_out_nobody_who_is_verified(tmp_path: Path) -> None:
    verifier = Verifier(lists(tmp_path, **OPENAIS), resolver=zones(), clock=now)
    assert await settled(verifier, GOOGLE, GENUINE) is Finding.VERIFIED
    for number in range(3 * OTHERS_MAX):
        assert verifier(OPENAI, f"2001:db8::{number:x}") is Finding.FORGED
    assert len(verifier._others) == OTHERS_MAX
    assert verifier(GOOGLE, GENUINE) is Finding.VERIFIED


@given(st.text(max_size=80), st.sampled_from(OPERATORS))
def test_no_address_makes_it_fail(address: str, operator: Operator) -> None:
    assert Verifier()(operator, address) is Finding.UNKNOWN


# What follows


def rules(finding: Finding, **limits: Any) -> list[Rule | LoadRule]:
    return list(handle_request(CallerClass.KNOWN_CRAWLER, Limits(**limits), finding=finding))


def test_verified_and_forged_crawlers_have_an_all_clock_each() -> None:
    names = {finding: [rule.name for rule in rules(finding)] for finding in Finding}
    assert names[Finding.UNKNOWN] == ["lone_crawler", "all_crawlers", "load_defer", "hit_stack"]
    assert names[Finding.VERIFIED] == ["lone_crawler", "verified_crawlers", "load_defer", "hit_stack"]
    assert names[Finding.FORGED] == ["lone_crawler", "all_crawlers", "forged_crawlers", "load_defer", "hit_stack"]
    assert [rule.name for rule in rules(Finding.FORGED, all_crawlers_seconds=None)] == [
        "lone_crawler",
        "load_defer",
        "hit_stack",
    ]


@pytest.mark.parametrize("limits", [MODERN, Limits.modern()])
@pytest.mark.parametrize("is_acquaintance", [False, True])
def test_a_forged_crawler_takes_nobodys_bed(limits: Limits, is_acquaintance: bool) -> None:
    def room(finding: Finding) -> LoadRule:
        rules = handle_request(CallerClass.KNOWN_CRAWLER, limits, finding=finding, is_acquaintance=is_acquaintance)
        return next(rule for rule in rules if isinstance(rule, LoadRule))

    assert room(Finding.FORGED).sleeping_max == 0
    assert room(Finding.FORGED).at_most == room(Finding.UNKNOWN).at_most
    assert room(Finding.UNKNOWN).sleeping_max == room(Finding.VERIFIED).sleeping_max > 0


@in_virtual_time
async def test_where_there_is_no_room_an_honest_crawler_sleeps_and_a_forged_one_is_refused_at_once() -> None:
    app = modern()
    await known(app, GENUINE, FORGER)
    nobodys = app.store.prepare([])
    for _ in range(MODERN.load_max):
        app.store.admit(nobodys, (0,), 0, 0)
    before = now()
    assert await status(app, FORGER) == 503
    assert now() == before
    sleeping = asyncio.ensure_future(status(app, GENUINE))
    await asyncio.sleep(1)
    assert app.store.sleeping == 1
    app.store.release()
    assert await sleeping == 200


def modern(**settings: Any) -> Any:
    settings.setdefault("verify", Verifier(resolver=zones(), clock=now))
    return site(limits=MODERN, rate_limit_fields=False, **settings)


async def status(app: Any, client: str, agent: str = GOOGLEBOT, **scope: Any) -> int | None:
    return (await ask(app, client=client, agent=agent, **scope)).status


async def known(app: Any, *addresses: str) -> None:
    """Let DNS find out who asks from there, and the clocks run down."""
    for address in addresses:
        await status(app, address)
    await asyncio.sleep(40)


@in_virtual_time
async def test_who_merely_claims_cannot_keep_google_out() -> None:
    app = modern()
    await known(app, GENUINE, FORGER, FORGER_2)
    assert await status(app, "203.0.113.1", "SomeBot/1.0") == 200  # holds the clock of those of whom nothing is known
    assert await status(app, FORGER) == 503
    assert await status(app, GENUINE) == 200
    await asyncio.sleep(2)
    assert await status(app, FORGER) == 200
    await asyncio.sleep(0.001)
    assert await status(app, FORGER_2) == 503  # forgers wait for each other
    assert await status(app, "203.0.113.2", "SomeBot/1.0") == 200  # and nobody else for them
    assert await status(app, GENUINE) == 503  # as ever: 30 seconds


@in_virtual_time
async def test_in_the_pages_rules_a_claim_is_as_good_as_the_truth_and_nothing_is_looked_up() -> None:
    dns = zones()
    app = site(verify=Verifier(resolver=dns, clock=now))
    assert await status(app, FORGER) == 200
    assert await status(app, GENUINE) == 503
    await asyncio.sleep(5)
    assert dns.asked == []


@in_virtual_time
async def test_behind_a_trusted_proxy_the_forwarded_address_is_verified_in_full() -> None:
    dns = zones()
    app = modern(trusted_proxies=["10.0.0.0/8"], verify=Verifier(resolver=dns, clock=now))
    await status(app, "10.0.0.1", headers=[("X-Forwarded-For", "2001:db8:0:1::7")])
    await status(app, "10.0.0.1", headers=[("X-Forwarded-For", f"{GENUINE}, 203.0.113.9")])  # forged from the left
    await asyncio.sleep(5)
    assert dns.asked[:2] == ["2001:db8:0:1::7", "203.0.113.9"]


@in_virtual_time
async def test_an_agents_exemption_does_not_hold_for_who_forges_it() -> None:
    app = modern(exempt_agents=["Googlebot"])
    await known(app, GENUINE, FORGER)
    for _ in range(3):
        assert await status(app, GENUINE) == 200
    assert [await status(app, FORGER) for _ in range(2)] == [200, 503]


@in_virtual_time
async def test_a_forged_name_is_forged_where_the_web_api_is_called_too() -> None:
    app = modern(api_paths=["/api"])
    await known(app, FORGER)
    assert (await ask(app, "/api", client=FORGER, agent=GOOGLEBOT)).status == 200
    await asyncio.sleep(0.001)
    assert (await ask(app, "/api", client="203.0.113.1", agent="SomeBot/1.0")).status == 200


@in_virtual_time
async def test_a_ban_and_an_exemption_of_an_address_hold_whatever_is_found() -> None:
    app = modern(banned_callers=[GENUINE], exempt_callers=[FORGER])
    await known(app, FORGER)
    assert await status(app, GENUINE) == 403
    assert [await status(app, FORGER) for _ in range(3)] == [200] * 3


@in_virtual_time
async def test_the_log_says_that_a_name_was_forged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "throttle.refused")
    app = modern()
    await known(app, FORGER)
    await status(app, FORGER)
    await status(app, FORGER)
    app._refusals.close()
    assert f"Googlebot (forged) at {FORGER} (1)" in caplog.text


@in_virtual_time
async def test_lists_come_from_the_settings_and_what_was_learned_outlives_a_change_of_limits(tmp_path: Path) -> None:
    app = site(limits=MODERN, crawler_ranges=str(lists(tmp_path, **OPENAIS)), reverse_dns=False)
    before = app._in_force.verifier
    app._in_force.use(app._book.settings)
    assert app._in_force.verifier is before
    assert await status(app, FORGER, GPTBOT) == 200
    assert await status(app, "192.0.2.65", GPTBOT) == 200  # verified: a clock of its own


# Never better off


@dataclass(frozen=True)
class Act:
    """One request, or some time that passes, or a place that is given back."""

    kind: str
    caller: int = 0
    wait: int = 0


WAITS = [0, 1, 999_999, 1_999_999, 2_000_000, 15_000_000, 30_000_000]
"""microseconds; the rules' own windows, and a hair less"""

ACTS = st.lists(
    st.one_of(
        st.builds(Act, st.sampled_from(["bot", "unknown", "verified", "forged", "browser"]), st.integers(0, 2)),
        st.builds(
            Act, st.just("wait"), wait=st.sampled_from([0, 1, 999_999, 1_999_999, 2_000_000, 15_000_000, 30_000_000])
        ),
        st.just(Act("release")),
    ),
    max_size=30,
)
CLASSES = {
    "bot": (CallerClass.ASSUMED_BOT, Finding.UNKNOWN),
    "browser": (CallerClass.BROWSER, Finding.UNKNOWN),
    "unknown": (CallerClass.KNOWN_CRAWLER, Finding.UNKNOWN),
    "verified": (CallerClass.KNOWN_CRAWLER, Finding.VERIFIED),
    "forged": (CallerClass.KNOWN_CRAWLER, Finding.FORGED),
}
SMALL = Limits(load_max=3, sleeping_max=2, stack_hits=3)


class Twin:
    """A store that lives through a history, ending in one request of a kind."""

    def __init__(self, history: Sequence[Act]) -> None:
        self.store = MemoryStore()
        self.now = 1_000_000_000
        for act in history:
            if act.kind == "wait":
                self.now += act.wait
            elif act.kind == "release":
                if self.store.load:
                    self.store.release()
            else:
                self.ask(act.kind, act.caller)

    def ask(self, kind: str, caller: int) -> Verdict:
        caller_class, finding = CLASSES[kind]
        prepared = self.store.prepare(list(handle_request(caller_class, SMALL, finding=finding)))
        # One caller has one agent: whether it is a bot's or a crawler's, its keys are the same.
        hashes: Hashes = (0, 100 + caller, 200 + caller)
        return self.store.admit(prepared, hashes, self.now, wake_rank(caller_class))


def _order(verdict: Verdict) -> int:
    return 0 if isinstance(verdict, Served) else 1 if isinstance(verdict, Deferred) else 2


@given(history=ACTS, caller=st.integers(0, 2))
def test_after_any_history_a_forged_name_is_not_served_where_an_honest_caller_would_not_be(
    history: list[Act], caller: int
) -> None:
    async def story() -> None:
        forged = Twin(history).ask("forged", caller)
        for honest_kind in ("unknown", "bot"):
            honest = Twin(history).ask(honest_kind, caller)
            assert _order(forged) >= _order(honest)
            if isinstance(forged, Refused) and isinstance(honest, Refused) and not isinstance(forged, Deferred):
                assert forged.retry_after >= honest.retry_after

    run(story())


@given(history=ACTS, caller=st.integers(0, 2))
def test_nor_does_a_verified_name_make_a_crawler_better_off_than_a_bot_that_says_nothing(
    history: list[Act], caller: int
) -> None:
    async def story() -> None:
        assert _order(Twin(history).ask("verified", caller)) >= _order(Twin(history).ask("bot", caller))

    run(story())


@given(history=ACTS, kind=st.sampled_from(["unknown", "verified"]), caller=st.integers(0, 2))
def test_what_forgers_were_served_keeps_no_crawler_from_the_clock_of_another_kind(
    history: list[Act], kind: str, caller: int
) -> None:
    async def story() -> None:
        forgers = [Act("forged", 9) if act.kind == "forged" else act for act in history]
        without = [act for act in history if act.kind != "forged"]
        verdict = Twin([*forgers, Act("wait", wait=1)]).ask(kind, caller)
        alone = Twin([*without, Act("wait", wait=1)]).ask(kind, caller)
        if isinstance(verdict, Refused) and verdict.rule in ("all_crawlers", "verified_crawlers"):
            assert isinstance(alone, Refused)

    run(story())
