"""Reads the answers of one HTTP/1.1 connection (RFC 9112). No I/O.

As small as a reader for GETs can be, since the crowd runs beside the site that it tests: a tenth of what a general
parser in Python costs. Bounded, whatever comes; what it does not understand is an `AnswerError`, never a guess.
"""

import re

HEAD_BYTES_MAX = 65_536
BODY_BYTES_MAX = 16_000_000
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: |$)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;|$)")


class AnswerError(ValueError):
    """These bytes are no answer; one line."""


class AnswerReader:
    """One answer: `feed` it until `is_complete`, or until the connection ends, and then `end`."""

    __slots__ = (
        "_buffer",
        "_is_chunked",
        "_left",
        "body",
        "fields",
        "is_complete",
        "keeps_alive",
        "status",
    )

    def __init__(self) -> None:
        self.status = 0
        """0 until the head is read"""
        self.fields: dict[bytes, bytes] = {}
        """by lower-case name; of a field that is repeated, the values with commas (RFC 9110, 5.3)"""
        self.body = bytearray()
        self.is_complete = False
        self.keeps_alive = False
        """another request may follow on this connection"""
        self._buffer = bytearray()
        self._is_chunked = False
        self._left: int | None = None
        """bytes of the body (of the chunk) to come; None: until the connection ends (no chunk is open)"""

    def feed(self, data: bytes) -> None:
        """More bytes have come. Raises AnswerError; so does what follows a complete answer."""
        self._buffer += data
        while not self.status:
            if not self._read_head():
                return
        if self.is_complete:
            if self._buffer:
                raise AnswerError("more than was asked for")
        elif self._is_chunked:
            self._read_chunks()
        else:
            self._read_body()

    def end(self) -> None:
        """The connection has ended. Raises AnswerError where that is too early."""
        if not self.is_complete:
            if not self.status or self._is_chunked or self._left is not None:
                raise AnswerError("the connection ended too early")
            self.is_complete = True

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise AnswerError(f"a head of more than {HEAD_BYTES_MAX:,} bytes")
            return False
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        found = _STATUS.match(first)
        if found is None:
            raise AnswerError(f"no HTTP/1.1: {first[:40]!r}")
        status = int(found[2])
        if status < 200:  # 100 Continue, 103 Early Hints: the answer is yet to come
            return True
        fields = self.fields
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise AnswerError(f"a header without a colon: {line[:40]!r}")
            name, value = name.lower(), value.strip()
            fields[name] = fields[name] + b", " + value if name in fields else value
        self._frame(status, is_old=found[1] == b"0")
        self.status = status
        return True

    def _frame(self, status: int, *, is_old: bool) -> None:
        """How long the body is (RFC 9112, 6.3), and whether the connection stays (9.3)."""
        fields = self.fields
        connection = fields.get(b"connection", b"").lower()
        self.keeps_alive = b"keep-alive" in connection if is_old else b"close" not in connection
        coding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
        if status in (204, 304):
            self.is_complete = True
        elif coding is not None:
            if coding.lower() != b"chunked":
                raise AnswerError(f"transfer-encoding {coding[:40]!r} is not known here")
            self._is_chunked = True
        elif length is None:
            self.keeps_alive = False
        elif not length.isdigit() or len(length) > 12:
            raise AnswerError(f"content-length {length[:40]!r}")
        else:
            self._left = int(length)
            self.is_complete = self._left == 0

    def _read_body(self) -> None:
        if self._left is None:
            self._keep(len(self._buffer))
            return
        if len(self._buffer) > self._left:
            raise AnswerError("more than was told")
        self._left -= len(self._buffer)
        self._keep(len(self._buffer))
        self.is_complete = self._left == 0

    def _read_chunks(self) -> None:
        buffer = self._buffer
        while not self.is_complete:
            if self._left is None:
                end = buffer.find(b"\r\n")
                if end < 0:
                    if len(buffer) > HEAD_BYTES_MAX:
                        raise AnswerError("a chunk without a size")
                    return
                found = _CHUNK.match(bytes(buffer[:end]))
                if found is None:
                    raise AnswerError(f"a chunk of size {bytes(buffer[:20])!r}")
                del buffer[: end + 2]
                self._left = int(found[1], 16)
            elif self._left == 0:  # the last one; trailers are read over
                end = buffer.find(b"\r\n")
                if end < 0:
                    return
                del buffer[: end + 2]
                self.is_complete = end == 0
            elif len(buffer) < self._left + 2:
                return
            else:
                size = self._left
                if buffer[size : size + 2] != b"\r\n":
                    raise AnswerError("a chunk of another size than told")
                self._keep(size)
                del buffer[:2]
                self._left = None
        if buffer:
            raise AnswerError("more than was told")

    def _keep(self, size: int) -> None:
        self.body += self._buffer[:size]
        del self._buffer[:size]
        if len(self.body) > BODY_BYTES_MAX:
            raise AnswerError(f"an answer of more than {BODY_BYTES_MAX:,} bytes")
