"""The words and forms that `agent_rules.py` goes by; words in lower case, to be found anywhere in a text."""

import re


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Today's browsers, as `FORM` knows them. On Android the model is free text; elsewhere the platform has a
# small vocabulary. A product that is missing here costs its users' first request some microseconds, never the
# class.
_PRODUCTS = "|".join(
    _words(
        """
        Chrome Safari Mobile Version Firefox Edg OPR EdgA CriOS FxiOS GSA SamsungBrowser YaBrowser EdgiOS Edge
        UCBrowser U3 SA BroPP YaSearchBrowser YaApp_Android YaSearchApp webOmni MQQBrowser HuaweiBrowser
        XiaoMi/MiuiBrowser Vivaldi HeyTapBrowser VivoBrowser Brave DuckDuckGo Ddg Silk Puffin Quark Whale
        SeaMonkey Ubuntu Chromium Focus Klar OPT OPX PaleMoon Goanna Iron Waterfox Epiphany KAIOS baiduboxapp
        T7 TBS OculusBrowser Ecosia
        """
    )
)
FORM = re.compile(
    rb"Mozilla/5\.0 \((?:"
    rb"(Linux; (?:U; |arm; |arm_64; )?Android [^()]+|Android[^()]+)|"
    rb"(?:Windows NT [\d.]+|Macintosh|X11|iPhone|iPad|iPod touch)"
    rb"(?:; (?:Win64|x64|WOW64|U|rv:[\d.]+|Intel Mac OS X [\d_.]+|CPU (?:iPhone )?OS [\d_]+ like Mac OS X|"
    rb"Linux [\w.]+|Ubuntu|Fedora|CrOS \w+ [\d.]+|[a-z]{2}(?:-[A-Za-z]{2})?))*"
    rb")\)"
    rb"(?: AppleWebKit/[\d.]+\+? \(KHTML, like Gecko\)| Gecko/[\d.]+)"
    rb"(?: (?:" + _PRODUCTS.encode() + rb")(?:/[\d.]+(?:[A-Z]\d{1,4}[a-z]?)?(?:-gn)?(?:/apad)?)?)+"
)
"""A browser's whole string; the group is an Android device's platform, where anything may stand."""

SUSPICIOUS_IN_A_MODEL = _words("bot crawl spider slurp google facebook http www. @ compatible")

ENGINES = (
    *_words("applewebkit gecko trident/ firefox/ khtml presto/ opera goanna/ ucbrowser ucweb netfront navigator/"),
    *_words(
        "netscape webtv playstation nintendo avantgo dillo ibrowse icab netpositive netsurf omniweb ladybird/ servo/"
    ),
    "msie ",
)
COMPATIBLE_BROWSER = re.compile(
    r"compatible; ?(?:msie |konqueror|abrowse|avantgo|dillo|ibrowse|icab|netpositive|netsurf|omniweb|opera|origyn|"
    r"webtv|android|linux|macintosh|u;|windows|x11)"
)
"""«Compatible» as browsers say it; robots give their names there."""

FREE_TEXT_PLATFORMS = _words("linux android mobile tablet")

OTHER_BROWSERS = (
    *_words("lynx/ links/ elinks/ w3m/ dillo/ netsurf/ browsh/ edbrowse/ retawq/ amaya/ icab/ ibrowse/ netpositive/"),
    *_words("hotjava/ cyberdog/ ncsa_mosaic/ emacs-w3 surf/ uzbl midori/ bunjalloo/ democracy/ ucweb/ hbbtv/"),
    *("links (", "elinks (", "ice browser/"),
)
"""How browsers begin that don't begin with Mozilla or Opera."""

CRAWLER_WORDS = _words("crawl spider spyder robot slurp scrape scrapy scraping archiv harvest indexer")
BOT_WORDS = _words(
    """
    monitor uptime pinger pingdom synthetic healthcheck watchdog webhook lighthouse pagespeed
    headless phantomjs slimerjs selenium playwright puppeteer webdriver electron wkhtml
    webpagetest jsdom htmlunit cypress cutycapt
    cfnetwork okhttp python libwww curl newswire quiterss rssguard
    """
)
BOT_WORDS_IN_BROWSERS = _words(
    """
    verify verifier checker watcher inspector observatory measurement imageproxy capture thumb headers audit
    extractor analyzer validator downloader collector httpagent importer prerender snapshot webkit2
    """
)
"""What robots that drive a browser call themselves, behind the browser's own products."""

CRAWLER_WORDS_ELSEWHERE = _words(
    """
    search seo analy domain sitemap scout expander collector resolver semantic verif checker explorer fetcher
    yandex yahoo adstxt survey gpt llm preview unfurl
    """
)
"""Said by crawlers where no browser's string surrounds the name; within one, people's apps say them too."""

BOT = re.compile(r"(?<!cu)b[o0]ts?(?![a-z])")
"""A word that ends in bot; but not the phones named CUBOT, nor «Botswana»."""

BOT_IN_A_MODEL = re.compile(r"(?<!cu)bots?/|crawler")
"""A robot where an Android device tells its model, which may be a «Power Bot» or an «M_bot_tab»."""

COMMENT = re.compile(r"compatible; ?[a-z)]|khtml, like gecko[;,](?! ?safari)")
"""A robot's comment among a browser's products."""

ODD_CHARACTERS = re.compile(r"[<`\\]|\$\{|'(?![a-z])|\">")
"""What attacks write behind a browser's products."""

_STRANGE_LETTER = r"(?!\xf0\x9f[\x80-\xbf]{2})[\xee-\xf1][\x80-\xbf]"
LOOK_ALIKE = re.compile(rf"[a-z]{_STRANGE_LETTER}|{_STRANGE_LETTER}[\x80-\xbf]*[a-z]")
"""A Greek, Cyrillic or fullwidth letter in a word of Latin ones: UTF-8 read as latin-1, in lower case. Not an emoji."""

TOP_LEVEL = frozenset(_words("com net org io ai eu fr de info tech app dev party edu ru co"))
DOMAIN = re.compile(r"(?<![\w/.@\-])(?:[a-z0-9\-]+\.)+(?:" + "|".join(sorted(TOP_LEVEL)) + r")(?![\w.\-])")

MODERN = re.compile(r"applewebkit|firefox/\d\d")
"""Browsers that don't name a site among their products; some older ones, and proxies of their day, did."""

MAIL = re.compile(r"[\w.+\-]@[a-z0-9\-]+\.[a-z]")

IN_APP = re.compile(r"\[fb|instagram \d|barcelona \d")
"""Apps that tell the device's and the carrier's names behind their own."""

COMMON = frozenset(
    _words(
        """
        mozilla applewebkit khtml like gecko chrome safari version mobile firefox windows nt win64 x64 wow64
        linux android u wv macintosh intel mac os x x11 iphone ipad cpu build compatible msie trident net clr
        rv en us http https www the of and for 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 36 537 604 605 20100101
        """
    )
)
"""The words of every browser's string, which tell nothing of a robot."""

GENERIC = frozenset(_words("bot crawler spider robot search web com"))
"""Words of many robots' names."""

_FOLD = bytes(c + 32 if 65 <= c <= 90 else c if 48 <= c <= 57 or 97 <= c <= 122 or c >= 128 else 32 for c in range(256))


def words_of(text: str) -> list[str]:
    """The words of a latin-1 text, in lower case, without the common ones.

    Bytes past ASCII count as letters, so that a look-alike of a name is another word.
    """
    folded = text.encode("latin-1").translate(_FOLD).decode("latin-1")
    return [word for word in folded.split() if word not in COMMON]
