"""How the operators of crawlers say that their crawlers can be told from others: data, no decisions.

By the lists of addresses that they publish, and by the names of their hosts. Sources: the operators' own pages for
those who run a site, as of 2026. Left out are those who can't be told from others: Baidu, whose host names do not
resolve back to the address, so that whoever runs an address's reverse zone could claim them; and Google's
user-triggered fetchers, from whose addresses Google fetches whatever anybody asks for, or runs anybody's programs.
"""

from typing import NamedTuple


class Operator(NamedTuple):
    """One operator's crawlers, and how to check that a caller is one of them."""

    name: str
    agents: tuple[str, ...]
    """the crawlers' names, as the table of agents writes them, in whatever case"""
    hosts: tuple[str, ...] = ()
    """what their hosts are called; `*` stands for the beginning of a name, or for what is left of it"""
    lists: tuple[str, ...] = ()
    """which of `LISTS` have their addresses; all together"""
    is_elsewhere_too: bool = False
    """they ask from other addresses as well, as what fetches for a user may: then nobody is called forged"""


LISTS = {
    "google-common-crawlers": "https://developers.google.com/static/crawling/ipranges/common-crawlers.json",
    "google-special-crawlers": "https://developers.google.com/static/crawling/ipranges/special-crawlers.json",
    "bingbot": "https://www.bing.com/toolbox/bingbot.json",
    "applebot": "https://search.developer.apple.com/applebot.json",
    "duckduckbot": "https://duckduckgo.com/duckduckbot.json",
    "duckassistbot": "https://duckduckgo.com/duckassistbot.json",
    "gptbot": "https://openai.com/gptbot.json",
    "oai-searchbot": "https://openai.com/searchbot.json",
    "chatgpt-user": "https://openai.com/chatgpt-user.json",
    "anthropic": "https://claude.com/crawling/bots.json",
    "perplexitybot": "https://www.perplexity.com/perplexitybot.json",
    "perplexity-user": "https://www.perplexity.com/perplexity-user.json",
    "ccbot": "https://index.commoncrawl.org/ccbot.json",
    "meta": "https://www.facebook.com/peering/geofeed",
    "ahrefs": "https://api.ahrefs.com/v3/public/crawler-ip-ranges",
    "mistralai-user": "https://mistral.ai/mistralai-user-ips.json",
    "qwantbot": "https://help.qwant.com/wp-content/uploads/sites/latest/qwantbot.json",
    "mojeekbot": "https://www.mojeek.com/mojeekbot.json",
}
"""Where each list is published. A file in the operator's directory bears the list's name, with any ending."""

_GOOGLE = """googlebot googlebot-image googlebot-mobile googlebot-news googlebot-video googleother googleother-image
googleother-video google-inspectiontool storebot-google google-cloudvertexbot apis-google adsbot-google
adsbot-google-mobile mediapartners mediapartners-google google-safety"""

_META = """facebookbot facebookcatalog facebookexternalhit meta-externalads meta-externalagent meta-externalfetcher
meta-externalhit meta-webindexer"""

OPERATORS = (
    Operator(
        "Google",
        tuple(_GOOGLE.split()),
        # Not *.google.com: behind google-proxy-*.google.com stand services that fetch for anybody.
        ("crawl-*.googlebot.com", "geo-crawl-*.geo.googlebot.com", "rate-limited-proxy-*.google.com"),
        ("google-common-crawlers", "google-special-crawlers"),
    ),
    Operator(
        "Microsoft",
        ("bingbot", "adidxbot", "bingpreview", "microsoftpreview", "msnbot"),
        ("*.search.msn.com",),
        ("bingbot",),
    ),
    Operator("Apple", ("applebot",), ("*.applebot.apple.com",), ("applebot",)),
    Operator("DuckDuckGo", ("duckduckbot", "duckassistbot"), lists=("duckduckbot", "duckassistbot")),
    Operator("OpenAI", ("gptbot", "oai-searchbot"), lists=("gptbot", "oai-searchbot", "chatgpt-user")),
    Operator("OpenAI, for users", ("chatgpt-user",), lists=("chatgpt-user",), is_elsewhere_too=True),
    Operator("Anthropic", ("claudebot", "claude-searchbot"), lists=("anthropic",)),
    Operator("Anthropic, for users", ("claude-user",), lists=("anthropic",), is_elsewhere_too=True),
    Operator("Perplexity", ("perplexitybot",), lists=("perplexitybot", "perplexity-user")),
    Operator("Perplexity, for users", ("perplexity-user",), lists=("perplexity-user",), is_elsewhere_too=True),
    Operator("Common Crawl", ("ccbot",), ("*.crawl.commoncrawl.org",), ("ccbot",)),
    Operator(
        "Meta",
        tuple(_META.split()),
        lists=("meta",),
        is_elsewhere_too=True,  # the list has the addresses of Meta's network, and does not speak of crawlers
    ),
    Operator("Amazon", ("amazonbot", "amzn-searchbot"), ("*.crawl.amazonbot.amazon",)),
    Operator("Ahrefs", ("ahrefsbot",), lists=("ahrefs",)),
    Operator("Mistral, for users", ("mistralai-user",), lists=("mistralai-user",), is_elsewhere_too=True),
    Operator("Qwant", ("qwantbot",), lists=("qwantbot",)),
    Operator("Mojeek", ("mojeekbot",), lists=("mojeekbot",)),
    Operator(
        "Yandex",
        ("yandexbot", "yandex.com/bots", "yandexadditional", "yandexadditionalbot", "yandexrenderresourcesbot"),
        ("*.yandex.ru", "*.yandex.net", "*.yandex.com"),
    ),
    Operator("Pinterest", ("pinterestbot", "pinterest.com/bot"), ("*.pinterest.com", "*.pinterestcrawler.com")),
    Operator("Petal", ("petalbot",), ("*.petalsearch.com", "*.aspiegel.com")),
    Operator("Seznam", ("seznambot",), ("*.seznam.cz",)),
    Operator("Naver", ("yeti",), ("*.naver.com",)),
)
