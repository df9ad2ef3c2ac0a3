"""Other classifiers in place of ours."""

from throttle.server.agent_adapters import connotea_classifier, user_agents_classifier
from throttle.server.agents import UNLISTED, Agent, CallerClass

BROWSER, CRAWLER, BOT = CallerClass.BROWSER, CallerClass.KNOWN_CRAWLER, CallerClass.ASSUMED_BOT
CHROME = (
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)


def test_connoteas_lists_classify_as_connotea_did() -> None:
    classify_as_connotea = connotea_classifier().classify
    assert classify_as_connotea(b"").crawler == "-"
    assert classify_as_connotea(b"Googlebot/2.1").crawler == "Googlebot"
    assert classify_as_connotea(CHROME).caller_class is BROWSER
    assert classify_as_connotea(b"Lynx/2.8.9").caller_class is BROWSER
    assert classify_as_connotea(b"NetNewsWire/3.2").caller_class is BOT
    assert connotea_classifier(crawlers=("Acme",)).classify(b"Acme/1").crawler == "Acme"


def test_the_user_agents_package_can_classify_in_our_place() -> None:
    by_package = user_agents_classifier().classify
    assert by_package(b"-").crawler == "-"
    assert by_package(b"Googlebot/2.1 (+http://www.google.com/bot.html)") == Agent(
        CRAWLER, UNLISTED, "other classifier"
    )
    assert by_package(CHROME).caller_class is BROWSER
    assert by_package(b"curl/8.5.0").caller_class is BOT
