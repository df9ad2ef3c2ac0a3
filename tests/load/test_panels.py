import pytest

from throttle.load.answer import Answer
from throttle.load.page import Run, page
from throttle.load.panels import HEIGHT, WIDTH, latency_series, panels
from throttle.load.report import Counts, Report
from throttle.plot.picture import Area, Line, Text
from throttle.plot.svg import svg


def a_report(name="people"):
    report = Report([name, "bots"])
    for at in range(60):
        for kind in report.tallies:
            report.offer(kind)
        report.count(name, Answer(), 0.1 + at / 100, at)
        report.count("bots", Answer(refused_by="load_defer") if at % 2 else Answer(), 0.5, at)
    report.counts = [Counts(at, at % 15, 15, at % 10, 10) for at in range(60)]
    return report


def test_a_run_has_three_panels_and_two_where_the_site_does_not_tell_its_counts():
    report = a_report()
    assert len(panels(report, 60, "x")) == 3
    report.counts = []
    assert len(panels(report, 60, "x")) == 2


def test_nothing_is_drawn_outside_of_its_panel():
    for picture in panels(a_report(), 60, "x"):
        for shape in picture.shapes:
            points = [(shape.x, shape.y)] if isinstance(shape, Text) else shape.points
            assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points), shape


def test_a_slower_request_is_drawn_higher_and_a_later_one_further_right():
    people = panels(a_report(), 60, "x")[0].shapes
    line = max((shape for shape in people if isinstance(shape, Line)), key=lambda line: len(line.points))
    assert line.points[0][0] < line.points[-1][0]
    assert line.points[0][1] > line.points[-1][1]


def test_outcomes_are_stacked_so_that_their_edge_is_what_was_answered():
    areas = [shape for shape in panels(a_report(), 60, "x")[1].shapes if isinstance(shape, Area)]
    assert len(areas) == 2  # served, refused
    served, refused = areas
    assert min(y for _, y in refused.points) < min(y for _, y in served.points) + 1


def test_a_latency_is_drawn_where_the_request_was_to_begin():
    series = {one.name: one.points for one in latency_series(a_report(), 60, 10)}
    assert series["people"][0] == (5.0, pytest.approx(0.19))
    assert len(series["people"]) == 6


def test_the_page_needs_nothing_else_and_escapes_names():
    written = page([Run("a & b", a_report("<script>"), is_whole=False)], 60, ["<b>"])
    assert "<script" not in written
    assert "&lt;script&gt;" in written
    assert "Interrupted" in written
    assert "http://www.w3.org/2000/svg" in written
    assert written.count("http") == written.count("http://www.w3.org/2000/svg")


def test_an_empty_run_is_drawn_as_well():
    assert all(svg(picture) for picture in panels(Report(["people"]), 1, "nothing"))


def test_a_class_that_was_served_once_is_seen():
    report = Report(["people"])
    report.offer("people")
    report.count("people", Answer(), 0.1, 0.5)
    latency, outcomes = panels(report, 1, "a run")
    drawn = [shape.points for shape in latency.shapes if isinstance(shape, Line) and shape.width == 1.8]
    drawn += [shape.points for shape in outcomes.shapes if isinstance(shape, Area)]
    assert [max(x for x, _ in points) - min(x for x, _ in points) for points in drawn] == [8, 8]


def test_what_the_site_tells_after_the_traffic_is_not_drawn_at_its_end():
    report = a_report()
    within = panels(report, 10, "a run")
    report.counts.append(Counts(12.0, 0, 15, 0, 10))
    assert panels(report, 10, "a run") == within
