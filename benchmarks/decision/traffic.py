"""Requests as a server hands them over: real browsers' headers, every bytes object new, so that no hash is cached."""

from collections.abc import Iterator, Sequence
from typing import Any

Scope = dict[str, Any]

_CHROME = (
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)
_FIREFOX = b"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
_SAFARI = (
    b"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    b"Version/18.6 Mobile/15E148 Safari/604.1"
)

# In about the order in which each browser sends them: the agent stands second in Firefox, seventh in Chrome.
BROWSERS = (
    b"""host: papers.example
connection: keep-alive
sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
sec-ch-ua-mobile: ?0
sec-ch-ua-platform: "Windows"
upgrade-insecure-requests: 1
user-agent: %b
accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8
sec-fetch-site: same-origin
sec-fetch-mode: navigate
sec-fetch-dest: document
accept-encoding: gzip, deflate, br, zstd
accept-language: en-GB,en;q=0.9,de;q=0.8
cookie: session=eyJ1c2VyIjogbnVsbCwgInNlZW4iOiAxNzYzNjQwMDAwfQ.aR7x; theme=dark"""
    % _CHROME,
    b"""host: papers.example
user-agent: %b
accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
accept-language: en-GB,en;q=0.5
accept-encoding: gzip, deflate, br, zstd
referer: https://papers.example/search?q=crawlers
connection: keep-alive
cookie: session=eyJ1c2VyIjogbnVsbCwgInNlZW4iOiAxNzYzNjQwMDAwfQ.aR7x; theme=dark
upgrade-insecure-requests: 1
sec-fetch-dest: document
sec-fetch-mode: navigate
sec-fetch-site: same-origin
priority: u=0, i"""
    % _FIREFOX,
    b"""host: papers.example
accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
sec-fetch-site: same-origin
sec-fetch-dest: document
accept-language: en-GB,en;q=0.9
sec-fetch-mode: navigate
user-agent: %b
referer: https://papers.example/search?q=crawlers
accept-encoding: gzip, deflate, br
priority: u=0, i
cookie: session=eyJ1c2VyIjogbnVsbCwgInNlZW4iOiAxNzYzNjQwMDAwfQ.aR7x; theme=dark
connection: keep-alive"""
    % _SAFARI,
)
BOTS = (
    b"""host: papers.example
user-agent: python-requests/2.32.5
accept-encoding: gzip, deflate
accept: */*
connection: keep-alive""",
    b"""host: papers.example
user-agent: FreshRSS/1.27.1 (Linux; https://freshrss.org)
accept: application/atom+xml,application/rss+xml;q=0.9,*/*;q=0.1
accept-encoding: gzip
if-none-match: "5f3a"
connection: keep-alive""",
)
CRAWLERS = (
    b"""host: papers.example
connection: keep-alive
accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
from: googlebot(at)googlebot.com
user-agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
accept-encoding: gzip, deflate, br""",
    b"""host: papers.example
accept: */*
user-agent: Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot)
accept-encoding: gzip, br, zstd, deflate""",
)


def scope(kind: Sequence[bytes], number: int) -> Scope:
    """One GET of caller `number`, an address of its own in 10.0.0.0/8, with one of the kind's sets of headers."""
    headers = []
    for line in kind[number % len(kind)].split(b"\n"):
        name, _, value = line.partition(b": ")
        headers.append((name, value))
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 8000),
        "client": (address, 40000 + number % 20000),
        "scheme": "http",
        "method": "GET",
        "root_path": "",
        "path": "/paper",
        "raw_path": b"/paper",
        "query_string": b"id=2001.00001",
        "headers": headers,
        "state": {},
    }


def in_turn(callers: int) -> Iterator[int]:
    """Callers one after another, for ever."""
    while True:
        yield from range(callers)
