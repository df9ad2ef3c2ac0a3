"""Lists of URLs, one a line: from files plain or packed, in any encoding, or from standard input.

Every line is accounted for: it is a URL, or it is told why not. Blank lines and those that begin with # say nothing.
"""

import gzip
import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

LINE_MAX = 64 * 1024


class ListError(Exception):
    """A list cannot be read; the message says why."""


def lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines that say something. Bytes that are no UTF-8 come as surrogates, and are told as malformed later.

    Raises ListError.
    """
    try:
        buffered: Any = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
        start = buffered.peek(4)[:4]
        if start.startswith(b"\x1f\x8b"):
            buffered = gzip.GzipFile(fileobj=buffered)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):  # as Windows writes «Unicode»
            yield from _said(io.TextIOWrapper(buffered, encoding="utf-16", errors="replace"))
            return
        while line := buffered.readline(LINE_MAX):
            while line.startswith(b"\xef\xbb\xbf"):
                line = line[3:]
            text = line.decode("utf-8", errors="surrogateescape")
            if not line.endswith(b"\n") and len(line) >= LINE_MAX:
                while (rest := buffered.readline(LINE_MAX)) and not rest.endswith(b"\n"):
                    pass  # the rest of an endless line
            yield from _said([text])
    except (OSError, EOFError) as error:
        raise ListError(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _said(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        text = text.strip()
        if text and not text.startswith("#"):
            yield text


def printable(text: str, length: int = 2000) -> str:
    """As a person can see it, whatever it holds: control characters, surrogates and what turns text around escaped."""
    text = text[:length]
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", errors="surrogatepass").decode("ascii")
        for char in text
    )
