"""Which files are read, and in which order their hits come, in bounded memory."""

import bz2
import gzip
import lzma
import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from throttle.operate.access_log import order
from throttle.operate.access_log.files import Coverage, InputError, LogFile, named_files
from throttle.operate.access_log.line import UNKNOWN, Hit, Unread
from throttle.operate.access_log.order import in_order, sorted_on_disk, within_window

SECOND = 1_000_000


def line(second: int, path: str = "/", agent: str = "A") -> str:
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f'192.0.2.1 - - [17/May/2015:{clock} +0000] "GET {path} HTTP/1.1" 200 1 "-" "{agent}"\n'


def written(path: Path, lines: list[str]) -> str:
    path.write_text("".join(lines))
    return str(path)


def read(names: list[str], coverage: Coverage | None = None, way: order.Order = within_window) -> list[Hit]:
    coverage = coverage or Coverage()
    return list(in_order([LogFile(name, coverage) for name in names], coverage, way))


def hit(start: int) -> Hit:
    return start, UNKNOWN, "192.0.2.1", "GET", "/", b"", b""


def test_lines_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    seconds = [s + random.Random(3).randrange(200) for s in range(2000)]
    hits = read([written(tmp_path / "log", [line(s) for s in seconds])])
    assert [h[0] for h in hits] == sorted(h[0] for h in hits)
    assert len(hits) == 2000


def test_hits_of_one_second_keep_the_order_of_their_lines(tmp_path: Path) -> None:
    hits = read([written(tmp_path / "log", [line(7, f"/{n}") for n in range(100)])])
    assert [h[4] for h in hits] == [f"/{n}" for n in range(100)]


def test_a_hit_that_comes_too_late_counts_as_of_the_one_before_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "BATCH", 2)
    coverage = Coverage()
    starts = [0, 400, 401, 800, 10, 1200]
    hits = list(within_window((hit(s * SECOND) for s in starts), coverage))
    assert [h[0] // SECOND for h in hits] == [0, 400, 401, 401, 800, 1200]
    assert coverage.late == 1


def test_no_more_hits_are_held_back_than_the_window_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "BATCH", 10)
    monkeypatch.setattr(order, "HELD", 50)
    taken = 0

    def hits() -> Iterator[Hit]:
        nonlocal taken
        for _ in range(1000):  # all at once: the window in time never closes
            taken += 1
            yield hit(0)

    most = max(taken - given for given, _ in enumerate(within_window(hits(), Coverage())))
    assert most <= 60


def test_one_line_from_the_far_future_does_not_spoil_the_order_of_the_rest(tmp_path: Path) -> None:
    lines = [line(s) for s in range(100)]
    lines.insert(50, line(0).replace("2015", "2099"))
    hits = read([written(tmp_path / "log", lines)])
    assert all(before[0] <= after[0] for before, after in pairwise(hits))
    assert len(hits) == 101


@pytest.mark.parametrize("way", [within_window, sorted_on_disk])
def test_the_same_hits_come_in_whatever_order_the_files_are_named(tmp_path: Path, way: order.Order) -> None:
    dice = random.Random(5)
    names = []
    for n in range(5):
        lines = [line(s + dice.randrange(30), f"/{n}/{s}") for s in range(n * 300, n * 300 + 600)]
        names.append(written(tmp_path / f"log.{n}", lines))
    expected = read(names, way=way)
    assert len(expected) == 3000
    assert all(before[0] <= after[0] for before, after in pairwise(expected))
    for _ in range(5):
        dice.shuffle(names)
        assert read(names, way=way) == expected


def test_a_shuffled_log_is_sorted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "HELD", 700)
    monkeypatch.setattr(order, "BLOCK", 10)
    seconds = list(range(5000))
    name = written(tmp_path / "log", [line(s) for s in seconds])
    expected = read([name])
    random.Random(1).shuffle(seconds)
    shuffled = written(tmp_path / "shuffled", [line(s) for s in seconds])
    coverage = Coverage()
    assert read([shuffled], coverage, sorted_on_disk) == expected
    assert coverage.late == 0


def test_files_lie_open_only_while_their_hits_are_due(tmp_path: Path) -> None:
    names = [written(tmp_path / f"log.{n}", [line(n * 3600)]) for n in range(20)]
    coverage = Coverage()
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    hits = in_order([LogFile(name, coverage) for name in names], coverage)
    next(hits)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 3
    assert len(list(hits)) == 19


# Files


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_are_told_by_what_they_hold(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "access.log.1"
    path.write_bytes(pack(line(7).encode()))  # type: ignore[operator]
    assert len(read([str(path)])) == 1


def test_a_broken_off_gzip_file_loses_nothing_that_was_read(tmp_path: Path) -> None:
    path, dice = tmp_path / "access.log.gz", random.Random(2)
    lines = [line(s % 86_400, f"/{dice.random()}") for s in range(20_000)]
    packed = gzip.compress("".join(lines).encode())
    path.write_bytes(packed[: len(packed) // 2])
    coverage = Coverage()
    assert len(read([str(path)], coverage)) > 5000
    assert "broke off after line" in coverage.notes[0]


def test_an_empty_file_among_others_is_told_and_harms_nothing(tmp_path: Path) -> None:
    coverage = Coverage()
    names = [written(tmp_path / "empty", []), written(tmp_path / "log", [line(7)])]
    assert len(read(names, coverage)) == 1
    assert coverage.notes == [f"{names[0]} is empty"]


def test_lines_that_are_none_are_counted_and_the_first_three_kept(tmp_path: Path) -> None:
    coverage = Coverage()
    lines = [line(7), *(f"noise {n}\n" for n in range(5)), "\n", line(8)]
    name = written(tmp_path / "log", lines)
    assert len(read([name], coverage)) == 2
    assert (coverage.lines, coverage.parsed) == (8, 3)
    assert coverage.unread == {Unread.UNPARSED: 5, Unread.NO_REQUEST: 1}
    assert coverage.samples == [(name, n + 2, f"noise {n}\n".encode()) for n in range(3)]


def test_a_line_without_an_end_is_read_in_pieces(tmp_path: Path) -> None:
    coverage = Coverage()
    (tmp_path / "log").write_bytes(b"x" * 1_000_000 + b"\n" + line(7).encode())
    assert len(read([str(tmp_path / "log")], coverage)) == 1
    assert coverage.unread[Unread.UNPARSED] == 16


def test_a_pipe_is_read_once_and_whole() -> None:
    end, begin = os.pipe()
    with os.fdopen(begin, "w") as pipe:
        pipe.write("".join(["noise\n", *(line(s) for s in range(20))]))
    coverage = Coverage()
    assert len(read([f"/dev/fd/{end}"], coverage)) == 20
    os.close(end)
    assert coverage.lines == 21


def test_patterns_name_files_and_each_is_read_once(tmp_path: Path) -> None:
    for name in ("a.log", "a.log.1", "b.log"):
        (tmp_path / name).touch()
    pattern = str(tmp_path / "a.log*")
    assert named_files([pattern, str(tmp_path / "a.log")]) == [str(tmp_path / "a.log"), str(tmp_path / "a.log.1")]


def test_files_that_cannot_be_read_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_text(line(7))
    (tmp_path / "log.zst").write_bytes(b"\x28\xb5\x2f\xfd....")
    for name, said in (
        ("missing", "no such file"),
        ("", "a directory; name the files in it"),
        ("plain.gz", "its name ends in .gz"),
        ("log.zst", "zstdcat"),
    ):
        with pytest.raises(InputError, match=said) as error:
            read(named_files([str(tmp_path / name)]))
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="only once"):
        named_files(["-", "-"])
