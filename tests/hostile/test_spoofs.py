"""Promise 9: a caller cannot choose who it is. Each spoof, sent through the whole middleware, and as whom it counts."""

from typing import Any, NamedTuple

import pytest

from tests.asgi import CHROME, GOOGLEBOT, http_scope
from tests.server.site import site
from tests.virtual_clock import in_virtual_time
from throttle import Limits
from throttle.server.crawler_operators import Operator
from throttle.server.evidence import Finding
from throttle.server.verify import Verifier

PROXY, GOOGLES, CALLER = "10.0.0.1", "66.249.66.1", "203.0.113.7"
SENT = ("Sec-Fetch-Mode", "navigate")
PHONE = (
    "Mozilla/5.0 (Linux; Android 10; {}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36"
)
XFF, FORWARDED, REAL = "X-Forwarded-For", "Forwarded", "X-Real-IP"


class Spoof(NamedTuple):
    """What is sent, and who that is: class, the crawler's name, finding, and the address that counts."""

    what: str
    agent: str | bytes | None
    headers: list[tuple[str, str]]
    caller_class: str
    crawler: str | None = None
    finding: str = "unknown"
    address: str = CALLER
    client: str = CALLER


def hops(what: str, header: str, value: str | list[str], address: str, client: str = PROXY) -> Spoof:
    """A browser behind a proxy, with a chain of hops."""
    values = [value] if isinstance(value, str) else value
    headers = [SENT, *((header, one) for one in values)]
    return Spoof(what, CHROME, headers, "browser", address=address, client=client)


SPOOFS = [
    # A crawler's name, borrowed
    Spoof("genuine Googlebot", GOOGLEBOT, [], "known crawler", "Googlebot", "verified", GOOGLES, GOOGLES),
    Spoof("forged Googlebot", GOOGLEBOT, [], "known crawler", "Googlebot", "forged"),
    Spoof("forged Googlebot in a browser", f"{CHROME} Googlebot/2.1", [SENT], "known crawler", "Googlebot", "forged"),
    Spoof("forged, in capitals", "GOOGLEBOT", [], "known crawler", "Googlebot", "forged"),
    Spoof("forged, behind 64 KiB", "x" * 65_000 + " Googlebot/2.1", [], "known crawler", "Googlebot", "forged"),
    Spoof(
        "forged Googlebot that claims Google's address",
        GOOGLEBOT,
        [(XFF, GOOGLES), (REAL, GOOGLES), (FORWARDED, f"for={GOOGLES}")],
        "known crawler",
        "Googlebot",
        "forged",
    ),
    Spoof(
        "the same through a trusted proxy",
        GOOGLEBOT,
        [(XFF, f"{GOOGLES}, {CALLER}")],
        "known crawler",
        "Googlebot",
        "forged",
        client=PROXY,
    ),
    # A browser's name, borrowed
    Spoof("Chrome that sends nothing of Chrome's", CHROME, [], "assumed bot", None, "browser without fetch metadata"),
    Spoof("trailing «bot»", f"{CHROME} bot", [SENT], "known crawler", "unlisted crawler"),
    Spoof("trailing «Bot/1.0»", f"{CHROME} Bot/1.0", [SENT], "known crawler", "unlisted crawler"),
    Spoof("a library behind a browser's name", f"{CHROME} python-requests/2.32", [SENT], "assumed bot"),
    # Phones that are named like robots
    Spoof("CUBOT phone", PHONE.format("CUBOT X50"), [SENT], "browser"),
    Spoof("CUBOT phone, with its build", PHONE.format("CUBOT_NOTE_20_PRO Build/QP1A.190711.020"), [SENT], "browser"),
    Spoof("POWER BOT phone", PHONE.format("POWER BOT"), [SENT], "browser"),
    # Look-alikes of letters
    Spoof("Cyrillic о in Googlebot", "Gооglebot/2.1".encode(), [], "known crawler", "unlisted crawler"),
    Spoof("Cyrillic о in «bot», too", "Gооglebоt/2.1".encode(), [], "assumed bot"),
    Spoof("Cyrillic letters in Mozilla", CHROME.replace("Mozilla", "Моzillа").encode(), [SENT], "assumed bot"),
    # Proxy chains: read from the right, past whom is trusted
    hops("one hop", XFF, CALLER, CALLER),
    hops("forged from the left", XFF, f"{GOOGLES}, 127.0.0.1, {CALLER}", CALLER),
    hops("private hops", XFF, f"{CALLER}, 10.1.1.1, 10.2.2.2", CALLER),
    hops("a private network that is not trusted", XFF, f"{CALLER}, 192.168.0.9", "192.168.0.9"),
    hops("nothing but private hops", XFF, "10.1.1.1, 10.2.2.2", "10.1.1.1"),
    hops("an empty header", XFF, "", PROXY),
    hops("an empty hop at the right", XFF, f"{CALLER}, ", PROXY),
    hops("an empty hop at the left", XFF, f", {CALLER}", CALLER),
    hops("quoted", XFF, f'"{CALLER}"', CALLER),
    hops("quoted, with a port", FORWARDED, f'for="{CALLER}:4711"', CALLER),
    hops("a quote left open", FORWARDED, f'for="{GOOGLES}, for={CALLER}', CALLER),
    hops("IPv6", XFF, "2001:db8:1:2::7", "2001:db8:1:2::/64"),
    hops("IPv6 in brackets, with a port", XFF, "[2001:db8:1:2::7]:80", "2001:db8:1:2::/64"),
    hops("IPv6 as RFC 7239 quotes it", FORWARDED, 'for="[2001:db8:1:2::7]:80"', "2001:db8:1:2::/64"),
    hops("IPv6, another address of its network", REAL, "2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
    hops("IPv4 in IPv6's clothes", XFF, f"::ffff:{CALLER}", CALLER),
    hops("hidden and unknown hops", FORWARDED, f"for={CALLER}, for=_hidden", PROXY),
    hops("from nobody's proxy", XFF, GOOGLES, "198.51.100.9", client="198.51.100.9"),
    # Headers given twice
    hops("X-Forwarded-For twice", XFF, [GOOGLES, CALLER], CALLER),
    hops("X-Forwarded-For twice, the trusted hop apart", XFF, [f"{GOOGLES}, {CALLER}", "10.3.3.3"], CALLER),
    hops("Forwarded twice", FORWARDED, [f"for={GOOGLES}", f"for={CALLER}"], CALLER),
    hops("X-Real-IP twice", REAL, [GOOGLES, CALLER], CALLER),
    Spoof(
        "two agents, of which the first counts",
        GOOGLEBOT,
        [("User-Agent", CHROME), SENT],
        "known crawler",
        "Googlebot",
        "forged",
    ),
    Spoof("two agents, the browser first", CHROME, [("User-Agent", GOOGLEBOT), SENT], "browser"),
    Spoof("no agent", None, [SENT], "known crawler", "-"),
    Spoof("an empty agent, then a browser's", "", [("User-Agent", CHROME), SENT], "known crawler", "-"),
]


class ByAddress(Verifier):
    """Google asks from one address."""

    def __call__(self, operator: Operator, address: str) -> Finding:
        return Finding.VERIFIED if address == GOOGLES else Finding.FORGED


@pytest.mark.parametrize("spoof", SPOOFS, ids=lambda spoof: spoof.what)
@in_virtual_time
async def test_a_spoof_counts_as_who_it_is(spoof: Spoof) -> None:
    app = site(limits=Limits.modern(), trusted_proxies=["10.0.0.0/8"], verify=ByAddress())
    headers = [*spoof.headers, ("X-Forwarded-Proto", "https")]
    scope: Any = http_scope(agent=spoof.agent, client=spoof.client, headers=headers, scheme="https")
    who = app.who(scope)
    assert (who.caller_class.value, who.crawler, who.finding.value) == spoof[3:6]
    assert app._book.caller(scope)[2] == spoof.address


def test_each_spoof_stands_in_the_table_once() -> None:
    assert len({spoof.what for spoof in SPOOFS}) == len(SPOOFS)
