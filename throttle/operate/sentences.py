"""A policy as sentences, for those who must answer for it."""

from collections.abc import Iterator

from throttle.server.load_limit import LEAST, MOST
from throttle.server.policy import AUTO, Delay, Limits, asks_for_networks
from throttle.server.rule import Part
from throttle.server.settings import Settings


def policy_in_sentences(settings: Settings, store: str | None = None) -> Iterator[str]:
    """What these settings do, a sentence a line; `store`, where one is named."""
    if not settings.enforce:
        yield "Dry run: nobody is refused or delayed; what would have been is counted and logged."
    yield from _limits_in_sentences(settings.limits)
    for one in settings.path_limits:
        methods = "any method" if one.methods is None else " or ".join(one.methods)
        yield f"For {one.path} and below, by {methods}, counted apart:"
        for sentence in _limits_in_sentences(one.limits):
            yield f"    {sentence}"
    yield from _pause_in_sentences(settings.limits)
    yield from _site_in_sentences(settings)
    if store is not None:
        yield f"The counts are kept in the store {store!r}."


def _pause_in_sentences(limits: Limits) -> Iterator[str]:
    refused = "everybody, before looking at who asks" if limits.pause_early else "everybody"
    if limits.pause_exempt and not limits.pause_early:
        refused += f" but {_listed(limits.pause_exempt)}"
    yield (
        f"{'The site is paused: it' if limits.paused else 'In a pause the site'} refuses {refused}, "
        f"and tells {limits.pause_seconds:g} s where the pause has no end."
    )


def _limits_in_sentences(limits: Limits) -> Iterator[str]:
    stack = ""
    if limits.stack_hits is not None:
        stack = f"more than {limits.stack_hits} requests in {limits.stack_seconds:g} s"
    yield "A person's browser is served at once, whatever the load" + (f", unless it made {stack}." if stack else ".")
    unless = []
    if limits.lone_crawler_seconds is not None:
        unless.append(f"it was served at the same address within {limits.lone_crawler_seconds:g} s")
    if limits.all_crawlers_seconds is not None:
        unless.append(f"any known crawler was served within {limits.all_crawlers_seconds:g} s")
    if stack:
        unless.append(f"it made {stack}")
    if limits.load_max == AUTO:
        room = "while its process can bear one more"
    else:
        room = f"while fewer than {limits.load_max} other requests run"
    yield f"A known crawler is served {room}" + (f", unless {'; or '.join(unless)}." if unless else ".")
    yield f"Any other agent, and who calls the Web API, is served {room}" + (
        f", unless it made {stack}." if stack else "."
    )
    if limits.load_max == AUTO:
        yield (
            "How many requests that are, each process finds out: it begins with as many as it may use processors, and "
            f"compares how long its pages take while few and while many run; {LEAST} at least, {MOST} at most, and two "
            "or three times as many while there is room for all. Robots wait for room in the process they came to."
        )
    if limits.sleeping_max:
        yield (
            f"A robot that finds no room waits for it, {_delay(limits.defer_delay)}; "
            f"at most {limits.sleeping_max} wait, more are refused at once."
        )
    else:
        yield "A robot that finds no room is refused at once."
    told = _delay(limits.wait_told, "after")
    yield f"One that is refused for want of room is told to come back {told}, or up to half as long again."
    if limits.need_fetch_metadata:
        yield (
            "Who claims to be a modern browser, and over https sends neither Sec-Fetch-Mode nor Accept-Language, "
            "counts as any other agent."
        )
    if limits.verify_crawlers:
        yield (
            "Crawlers that are verified wait for each other only; one whose name is forged waits for all "
            "but those, and is refused where there is no room."
        )
    yield from _modern_in_sentences(limits)
    if limits.stack_exempt_agents:
        yield f"Requests are not counted for agents that contain {_listed(limits.stack_exempt_agents)}."


def _modern_in_sentences(limits: Limits) -> Iterator[str]:
    """What is not of the page."""
    within = f"in {limits.stack_seconds:g} s"
    if limits.load_is_asked_last:
        yield "A robot's requests are counted before it waits for room."
    if limits.cookies:
        yield (
            "A browser is given a signed cookie, and is counted by it; without one it is counted by its address and "
            "agent, with all that share them."
        )
    if limits.parts_hits is not None:
        yield f"What its pages load is counted apart: at most {limits.parts_hits} {within}."
    pages = [] if limits.network_hits is None else [f"{limits.network_hits} pages"]
    if limits.network_parts is not None and limits.parts_hits is not None:
        pages.append(f"{limits.network_parts} of what they load")
    if pages:
        yield f"Whatever the agents, at most {' and '.join(pages)} {within} for the browsers of one network."
    bots = []
    if limits.network_bot_hits is not None:
        bots.append(f"at most {limits.network_bot_hits} requests {within} for the robots of one network")
    shares = [
        f"{hits} for those of {network}"
        for hits, network in ((limits.share_hits, "one network"), (limits.wide_share_hits, "a wider one"))
        if hits is not None
    ]
    if shares:
        half = "half as many as may" if limits.load_max == AUTO else f"{Part.HALF.of(limits.load_max)} others"
        bots.append(f"while {half} run, at most {' and '.join(shares)}")
    if bots:
        yield f"Whatever the agents, {'; '.join(bots)}."
    if limits.sleepers_per_network is not None:
        yield f"Of the robots that wait for room, at most {limits.sleepers_per_network} of one network."
    if limits.acquaintance_visits is not None:
        visits, hours = limits.acquaintance_visits, limits.acquaintance_seconds / 3600
        of_all = "a third of the" if limits.load_max == AUTO else f"{limits.load_max // 3} of the {limits.load_max}"
        yield (
            f"Acquaintances come before strangers, and {of_all} places are kept for them: a "
            f"robot served {visits} times within {hours:g} h, at least {limits.acquaintance_apart_seconds:g} s apart."
        )


def _delay(delay: Delay, preposition: str = "for") -> str:
    if delay.multiplier == 0 or delay.minimum == delay.maximum:
        return f"{preposition} {delay.seconds(0):g} s"
    added = f" and {delay.adjustment:g} s" if delay.adjustment else ""
    least = f" at least {delay.minimum:g} s and" if delay.minimum else ""
    return f"{preposition} {delay.multiplier:g} s for each running request{added},{least} at most {delay.maximum:g} s"


def _site_in_sentences(settings: Settings) -> Iterator[str]:
    if settings.trusted_proxies:
        header = settings.forwarded_header or "X-Forwarded-For, Forwarded or X-Real-IP"
        yield f"The caller's address is read from {header} when the peer is one of {_listed(settings.trusted_proxies)}."
    else:
        yield "The caller's address is the socket's; no header is believed."
    yield f"IPv6 callers count by their /{settings.ipv6_prefix}."
    if settings.verifies:
        lists = [f"the lists in {settings.crawler_ranges}"] if settings.crawler_ranges else []
        dns = ["reverse DNS"] if settings.reverse_dns else []
        nothing = "nothing: name crawler_ranges, or allow reverse_dns"
        yield f"Crawlers are verified by {_listed([*lists, *dns]) or nothing}."
    elif settings.crawler_ranges:
        yield "No crawler is verified, and crawler_ranges not looked at: no limits have verify_crawlers."
    if any(asks_for_networks(limits) for limits in (settings.limits, *(one.limits for one in settings.path_limits))):
        (narrow, narrow6), (wide, wide6) = settings.network_prefixes, settings.wide_network_prefixes
        yield f"A network is a /{narrow} of IPv4 and a /{narrow6} of IPv6; a wider one a /{wide} and a /{wide6}."
    if any(limits.cookies for limits in (settings.limits, *(one.limits for one in settings.path_limits))):
        made = "cookie_secret" if settings.cookie_secret else "a key of this process, which no other worker knows"
        yield f"Cookies are signed with {made}."
    if settings.api_paths:
        yield f"Who asks for {_listed(settings.api_paths)} or below is an API client, whatever its agent."
    exempt = ["/robots.txt", *(settings.exempt_paths if settings.exempt_paths is not None else ["health checks"])]
    files = settings.exempt_prefixes if settings.exempt_prefixes is not None else ["mounted static files"]
    preflights = ["CORS preflights"] if settings.exempt_preflights else []
    yield f"Never throttled: {_listed([*exempt, *files, *preflights])}."
    for what, names in (("callers", settings.exempt_callers), ("agents with", settings.exempt_agents)):
        if names:
            yield f"No rule concerns {what} {_listed(names)}."
    for what, names in (("callers", settings.banned_callers), ("agents with", settings.banned_agents)):
        if names:
            yield f"Banned, and answered 403: {what} {_listed(names)}."
    if settings.agent_table is not None:
        yield f"Robots' names are those in {settings.agent_table}, which is read again when it changes."
    for what, names in (
        ("a known crawler", settings.crawlers),
        ("another robot", settings.bots),
        ("a browser", settings.browsers),
    ):
        if names:
            yield f"An agent that contains {_listed(names)} is {what}."
    statuses = settings.statuses
    others = [f"{status} for {reason}" for reason, status in statuses.items() if reason != "*"]
    yield f"Refusals are answered {statuses['*']}" + (f", {_listed(others)}." if others else ".")
    if not settings.rate_limit_fields:
        yield "No answer tells what is left (RateLimit)."
    if settings.count_streams:
        yield "WebSockets and event streams count as running until they end."
    if settings.release_at == "start":
        yield "A request counts as running until its answer starts, not while its caller reads."


def _listed(names: object) -> str:
    return ", ".join(str(name) for name in names)  # type: ignore[attr-defined]
