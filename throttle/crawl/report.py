"""The report of a crawl as one HTML page that needs nothing else: what is broken, which hosts were slow, every pace."""

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from throttle.crawl.pace_log import Track
from throttle.crawl.pace_plot import LEGEND, TOO_SHORT, no_plot, plot
from throttle.crawl.result import Result
from throttle.crawl.tally import BROKEN_MAX, Tally
from throttle.crawl.url_list import printable
from throttle.plot.picture import Picture
from throttle.plot.svg import svg

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .8em .25em 0;vertical-align:top;"
    "border-bottom:1px solid #8884}td.n,th.n{text-align:right}td.u{word-break:break-all}svg{max-width:100%;height:auto}"
    "svg text{font:12px system-ui,sans-serif;fill:#333}@media(prefers-color-scheme:dark){svg text{fill:#ddd}}"
)
HOSTS = 30


def report(tally: Tally, tracks: Sequence[Track], seconds: float, sentences: Iterable[str]) -> str:
    """`sentences` sum the job up. Whatever a site sent is escaped; links lead to http and https only."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crawl report</title>",
        "<meta name=viewport content='width=device-width'>",
        # Nothing in it may load or run anything, whatever a page was called.
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<style>{STYLE}</style><h1>Crawl report</h1>",
        *(f"<p>{escape(printable(sentence))}</p>" for sentence in sentences),
        "<h2>What is broken</h2>",
        _broken(tally),
        "<h2>Which hosts took longest</h2>",
        _hosts(tally),
        "<h2>The pace of each</h2>",
    ]
    if tracks:
        parts.append(f"<p>{escape(LEGEND)}. Of this run, for the hosts with most work.</p>")
        parts += [f"<p>{svg(picture)}</p>" for picture in plots(tracks, seconds)]
    else:
        parts.append(f"<p>{TOO_SHORT}</p>")
    return "\n".join(parts) + "</html>\n"


def plots(tracks: Sequence[Track], seconds: float) -> list[Picture]:
    """At least one."""
    return [plot(track, seconds) for track in tracks] or [no_plot()]


def plot_page(tracks: Sequence[Track], seconds: float) -> str:
    """The plots alone."""
    drawn = "".join(f"<p>{svg(picture)}</p>" for picture in plots(tracks, seconds))
    head = "<!doctype html><html lang=en><meta charset=utf-8><title>Pace of each host</title>"
    return f"{head}<style>{STYLE}</style><h1>Pace of each host</h1><p>{escape(LEGEND)}.</p>{drawn}</html>\n"


def _broken(tally: Tally) -> str:
    if not tally.broken:
        return "<p>Nothing.</p>"
    rows = "".join(
        f"<tr><td>{escape(what(result))}</td><td class=u>{_link(result.url)}</td>"
        f"<td class=u>{_link(result.found_on) if result.found_on else ''}</td>"
        f"<td>{escape(printable(result.detail, 300))}</td></tr>"
        for result in tally.broken_results
    )
    more = f"<p>The first {BROKEN_MAX:,} of {tally.broken:,}.</p>" if tally.broken > len(tally.broken_results) else ""
    return f"{more}<table><tr><th>What<th>URL<th>Linked from<th>Why</tr>{rows}</table>"


def what(result: Result) -> str:
    """In a word or two."""
    if result.problem is not None:
        return result.problem.value if result.status is None else f"{result.status}, {result.problem.value}"
    return str(result.status)


def _hosts(tally: Tally) -> str:
    rows = []
    for name, host in tally.slowest_hosts(HOSTS):
        rate = "" if host.rate is None else f"{host.rate:.3g}"
        numbers = (
            f"{host.urls:,}",
            rate,
            f"{host.seconds / host.urls:.3f}",
            f"{host.slowest:.3f}",
            host.refused,
            host.broken,
        )
        cells = "".join(f"<td class=n>{number}</td>" for number in numbers)
        rows.append(f"<tr><td class=u>{escape(printable(name, 100))}</td>{cells}</tr>")
    heads = "".join(
        f"<th class=n>{head}" for head in ("URLs", "a second", "mean s", "slowest s", "tried again", "broken")
    )
    return f"<table><tr><th>Host{heads}</tr>{''.join(rows)}</table>"


def _link(url: str) -> str:
    shown = escape(printable(url, 500))
    if not url.startswith(("http://", "https://")):
        return shown
    return f'<a rel="noreferrer nofollow" href="{escape(quote(url, safe=":/?#[]@!$&()*+,;=%~"))}">{shown}</a>'
