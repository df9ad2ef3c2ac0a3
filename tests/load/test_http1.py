"""The reader of answers, by every way in which an answer may be framed, and cut, and wrong."""

import pytest

from throttle.load.http1 import BODY_BYTES_MAX, HEAD_BYTES_MAX, AnswerError, AnswerReader


def read(data: bytes, *, ends: bool = False, step: int = 0) -> AnswerReader:
    reader = AnswerReader()
    for at in range(0, len(data), step or len(data)):
        reader.feed(data[at : at + (step or len(data))])
    if ends:
        reader.end()
    return reader


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One:  a \r\nx-one: b\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"


@pytest.mark.parametrize("step", [0, 1, 2, 7])
@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_an_answer_is_the_same_however_it_is_cut(data, step):
    reader = read(data, step=step)
    assert (reader.status, bytes(reader.body), reader.is_complete, reader.keeps_alive) == (200, b"hello", True, True)


def test_names_of_fields_are_lower_case_and_a_repeated_field_is_joined():
    assert read(PLAIN).fields == {b"content-length": b"5", b"x-one": b"a, b"}


def test_an_answer_without_a_length_ends_with_its_connection():
    reader = read(b"HTTP/1.1 200 OK\r\n\r\nhel")
    assert not reader.is_complete
    reader.feed(b"lo")
    reader.end()
    assert (bytes(reader.body), reader.is_complete, reader.keeps_alive) == (b"hello", True, False)


@pytest.mark.parametrize("status", [204, 304])
def test_some_statuses_have_no_body_whatever_length_is_told(status):
    assert read(b"HTTP/1.1 %d \r\nContent-Length: 9\r\n\r\n" % status).is_complete


def test_an_interim_answer_is_not_the_answer():
    reader = read(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + PLAIN)
    assert (reader.status, reader.is_complete) == (200, True)
    assert b"link" not in reader.fields


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_whether_the_connection_stays_is_told_by_version_and_field(head, stays):
    assert read(head + b"Content-Length: 0\r\n\r\n").keeps_alive is stays


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff not http\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 13 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
        PLAIN + b"m",
        CHUNKED + b"more",
        b"HTTP/1.1 204 No Content\r\n\r\nx",
        b"x" * (HEAD_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (BODY_BYTES_MAX + 1),
    ],
)
def test_what_is_no_answer_is_an_error_and_no_guess(data):
    with pytest.raises(AnswerError):
        read(data)


@pytest.mark.parametrize("data", [PLAIN[:-1], CHUNKED[:-2], b"HTTP/1.1 200 OK\r\n"])
def test_an_answer_that_breaks_off_is_an_error(data):
    with pytest.raises(AnswerError):
        read(data, ends=True)
