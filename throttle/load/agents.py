"""What the members of a crowd say they are: lists of agents, by the name under which a mix asks for them."""

BROWSERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 "
    "Safari/605.1.15",
)
AGENTS = {
    "browsers": BROWSERS,
    # Names that the throttle knows for crawlers.
    "crawlers": (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
        "CCBot/2.0 (https://commoncrawl.org/faq/)",
        "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)",
        "Mozilla/5.0 (compatible; Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)",
        "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)",
    ),
    # Agents of no browser, and on no list of crawlers.
    "bots": ("python-requests/2.32.5", "Go-http-client/2.0", "okhttp/4.12.0", "page-grabber/0.3"),
    "blank": ("",),
    "feed readers": ("FreshFeeds/2.1 (feed reader)",),
    "API clients": ("reference-manager/5.2",),
}

ACCEPT_OF_PEOPLE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_OF_ROBOTS = "application/problem+json, */*;q=0.9"  # so that a refusal names its rule


def agents_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """The agents of these lists, in order; a name of no list is an agent itself."""
    return tuple(agent for name in names for agent in AGENTS.get(name, (name,)))
