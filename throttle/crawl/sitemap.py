"""Sitemaps (sitemaps.org): XML, an index of them, plain text; packed or not. Read tolerantly, and bounded.

Rule: nothing in it is trusted. No DTD or entity is resolved, what unpacks beyond 50 MiB is cut off there, and of a
file that breaks off what came before is used.
"""

import gzip
import zlib
from xml.parsers import expat

BYTES_MAX = 50 * 1024 * 1024  # as sitemaps.org says
URLS_MAX = 50_000
DEPTH_MAX = 3  # an index of indexes is not allowed, but exists


class NoSitemapError(ValueError):
    """The message says what it is instead."""


def unpacked(data: bytes) -> bytes:
    """Gzip or not, by its first bytes: servers unpack .gz now and then. At most BYTES_MAX."""
    if not data.startswith(b"\x1f\x8b"):
        return data[:BYTES_MAX]
    try:
        return zlib.decompressobj(wbits=31).decompress(data, BYTES_MAX)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise NoSitemapError(f"packed, but broken: {error}") from None


def sitemap(data: bytes) -> tuple[list[str], list[str]]:
    """The pages, and the further sitemaps, that a sitemap names. Raises NoSitemapError."""
    text = unpacked(data)
    start = text.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"<") and not text.startswith((b"\xff\xfe", b"\xfe\xff")):
        lines = [line.strip() for line in text.decode("utf-8", errors="replace").splitlines()]
        urls = [line for line in lines if line.startswith(("http://", "https://"))]
        if not urls:
            raise NoSitemapError("neither XML nor a list of URLs")
        return urls[:URLS_MAX], []
    return _parsed(start if start.startswith(b"<") else text)


def _parsed(text: bytes) -> tuple[list[str], list[str]]:
    pages: list[str] = []
    maps: list[str] = []
    path: list[str] = []
    chars: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def start(name: str, _: dict[str, str]) -> None:
        path.append(name.rpartition(" ")[2].lower())
        chars.clear()

    def end(_: str) -> None:
        if path[-2:] == ["url", "loc"] and len(pages) < URLS_MAX:
            pages.append("".join(chars).strip())
        elif path[-2:] == ["sitemap", "loc"] and len(maps) < URLS_MAX:
            maps.append("".join(chars).strip())
        path.pop()

    def declared(*_: object) -> None:
        raise NoSitemapError("declares entities, which no sitemap needs")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = chars.append
    parser.EntityDeclHandler = declared
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        if not pages and not maps:
            raise NoSitemapError(f"broken XML: {error}") from None
    if not pages and not maps and "urlset" not in text[:2000].decode("latin-1"):
        raise NoSitemapError("XML, but no sitemap")
    return pages, maps
