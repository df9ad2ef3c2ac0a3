import json

from throttle.load.answer import Answer
from throttle.load.report import COLUMNS, Report, percentile, plain_table


def filled() -> Report:
    report = Report(["people", "crawler"])
    for kind, count in (("people", 2), ("crawler", 5)):
        for _ in range(count):
            report.offer(kind)
    report.count("people", Answer(), 0.25)
    report.count("people", Answer(), 0.5)
    report.count("crawler", Answer(slept=3.0), 3.1)
    report.count("crawler", Answer(refused_by="load_defer", slept=15.0), 15.0)
    report.count("crawler", Answer(refused_by="hit_stack"), 0.01)
    report.count("crawler", Answer(failed="status 500"), 0.01)
    return report


def test_each_request_is_served_refused_failed_or_open():
    crawler = filled().tallies["crawler"]
    assert (crawler.offered, crawler.served, crawler.refused.total(), crawler.failed.total(), crawler.open) == (
        5,
        1,
        2,
        1,
        1,
    )


def test_who_slept_is_counted_whatever_came_then():
    assert filled().tallies["crawler"].slept == 2


def test_latencies_are_of_what_was_served():
    assert filled().tallies["crawler"].latencies == [3.1]


def test_a_percentile_is_a_value_that_was_measured():
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([2.0], 0.5) == 2.0
    assert percentile([], 0.5) is None


def test_the_table_has_a_row_for_each_class_in_order_also_for_one_that_never_came():
    report = Report(["people", "nobody"])
    report.offer("people")
    assert [row[0] for row in report.rows()] == ["people", "nobody"]
    assert all(len(row) == len(COLUMNS) for row in report.rows())
    assert report.rows()[1][-4:] == ("-", "-", "-", "-")


def test_the_plain_table_lines_up():
    lines = plain_table(filled().rows()).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "0.250" in lines[1]


def test_the_causes_name_every_rule_and_failure():
    assert filled().causes() == [
        "crawler, refused by: load_defer 1, hit_stack 1",
        "crawler, failed: status 500 1",
        "crawler, unanswered when the traffic ended: 1",
    ]


def test_the_report_for_machines_says_the_same():
    classes = json.loads(json.dumps(filled().as_json()))
    assert classes["crawler"]["refused"] == {"load_defer": 1, "hit_stack": 1}
    assert classes["people"]["latency_seconds"] == {"p50": 0.25, "p95": 0.5, "p99": 0.5, "max": 0.5}
    assert classes["crawler"]["open"] == 1


def test_figures_for_requirements_bear_the_classs_name_without_blanks():
    report = Report(["rude crawlers"])
    report.offer("rude crawlers")
    report.count("rude crawlers", Answer(refused_by="hit_stack"), 0.1)
    figures = report.figures()
    assert figures["rude_crawlers.refused"] == 1
    assert figures["rude_crawlers.served_share"] == 0
    assert figures["rude_crawlers.p95"] is None


def test_latencies_of_a_part_of_the_time_are_told_by_when_they_were_to_begin():
    report = Report(["people"])
    for at, latency in ((1.0, 5.0), (2.0, 0.2), (3.0, 0.3)):
        report.offer("people")
        report.count("people", Answer(), latency, at)
    assert report.tallies["people"].latencies_between(2.0, 3.0) == [0.2]
    assert sorted(report.tallies["people"].latencies_between(2.0)) == [0.2, 0.3]


def test_the_live_table_has_the_latencies_of_the_last_only():
    report = Report(["people"])
    for latency in (9.0, 1.0, 1.0):
        report.offer("people")
        report.count("people", Answer(), latency)
    assert report.rows(last=2)[0][-1] == "1.000"
    assert report.rows()[0][-1] == "9.000"
