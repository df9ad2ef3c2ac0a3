from throttle.crawl.pace_log import Sample, Track
from throttle.crawl.report import plot_page, plots
from throttle.plot.picture import Dot


def test_a_run_that_was_too_short_for_a_plot_says_so_in_one() -> None:
    assert len(plots([], 0.1)) == 1
    assert "too short" in plot_page([], 0.1)


def test_refusals_are_marked_when_they_came_and_a_hosts_name_is_escaped() -> None:
    track = Track("<b>", [Sample(0.0, 0, 0, 2.0), Sample(5.0, 10, 0, 2.0), Sample(10.0, 20, 3, 2.0)])
    (picture,) = plots([track], 10.0)
    (dot,) = (shape for shape in picture.shapes if isinstance(shape, Dot))
    assert dot.x == max(x for shape in picture.shapes for x, _ in getattr(shape, "points", ()))
    assert "<b>" not in plot_page([track], 10.0)
