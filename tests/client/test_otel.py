"""What OpenTelemetry is told: waiting apart from the request, and hosts in bounded number."""

import asyncio
import subprocess
import sys
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests import virtual_clock
from throttle.client import AsyncThrottledTransport, HostStopped, Politeness, WaitedTooLong
from throttle.client.otel import OTHER, Telemetry
from throttle.client.pace.aimd import AimdPace


class Told:
    """A telemetry and what it has exported."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.tracer = tracers.get_tracer("the caller's")
        self.telemetry = Telemetry(
            tracer_provider=tracers,
            meter_provider=MeterProvider(metric_readers=[self._reader]),
            wall_clock=lambda: round(virtual_clock.now() * 1e9),
            **options,
        )

    def spans(self, name: str) -> list[Any]:
        return [span for span in self._spans.get_finished_spans() if span.name == name]

    def points(self, name: str) -> list[Any]:
        data: Any = self._reader.get_metrics_data()
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


def client(told: Told, answer: Any, **settings: Any) -> httpx.AsyncClient:
    transport = AsyncThrottledTransport(
        clock=virtual_clock.now,
        pace=lambda _: AimdPace(rate=0.1, increase=0.0),
        transport=lambda: httpx.MockTransport(answer),
        on_event=told.telemetry,
        **settings,
    )
    return httpx.AsyncClient(transport=transport)


async def served(request: httpx.Request) -> httpx.Response:
    await asyncio.sleep(0.5)
    return httpx.Response(200)


def seconds(span: Any) -> float:
    return (span.end_time - span.start_time) / 1e9


@virtual_clock.in_virtual_time
async def test_waiting_for_a_turn_is_told_apart_from_the_request() -> None:
    told = Told()
    async with client(told, served) as asking:
        for _ in range(2):
            await asking.get("http://www.example.org/")
    (wait,) = told.spans("throttle.wait")
    assert seconds(wait) == pytest.approx(9.5)
    assert [seconds(span) for span in told.spans("throttle.request")] == pytest.approx([0.5, 0.5])
    assert wait.end_time == told.spans("throttle.request")[1].start_time
    assert told.points("throttle.client.wait.duration")[0].sum == pytest.approx(9.5)
    (requests,) = told.points("throttle.client.request.duration")
    assert (requests.count, requests.sum) == (2, pytest.approx(1.0))
    assert dict(requests.attributes) == {"throttle.host": "example.org", "throttle.outcome": "served"}


@virtual_clock.in_virtual_time
async def test_drop_pause_and_retry_are_events_of_the_span_that_the_caller_has_open() -> None:
    answers = iter([httpx.Response(429, headers={"retry-after": "20"}), httpx.Response(200)])
    told = Told()
    with told.tracer.start_as_current_span("a page") as page:
        async with client(told, lambda request: next(answers)) as asking:
            assert (await asking.get("http://example.org/")).status_code == 200
    (span,) = told.spans("a page")
    assert sorted(event.name for event in span.events) == ["throttle.dropped", "throttle.pause", "throttle.retry"]
    dropped = next(event for event in span.events if event.name == "throttle.dropped")
    assert dict(dropped.attributes) == {
        "throttle.host": "example.org",
        "throttle.status": "429",
        "throttle.told": 20.0,
    }
    outcomes = [(dict(point.attributes), point.value) for point in told.points("throttle.client.outcomes")]
    assert sorted((told_of["throttle.status"], count) for told_of, count in outcomes) == [("200", 1), ("429", 1)]
    assert told.points("throttle.client.retries")[0].value == 1
    assert told.points("throttle.client.pauses")[0].value == pytest.approx(20.5, abs=0.5)
    for name in ("throttle.wait", "throttle.request"):
        assert {child.parent.span_id for child in told.spans(name)} == {page.get_span_context().span_id}


@virtual_clock.in_virtual_time
async def test_a_request_that_is_given_up_is_counted_with_its_wait() -> None:
    told = Told()
    async with client(told, served, politeness=Politeness(turn_max=4.0)) as asking:
        await asking.get("http://example.org/")
        with pytest.raises(WaitedTooLong):
            await asking.get("http://example.org/")
    (wait,) = told.spans("throttle.wait")
    assert seconds(wait) == pytest.approx(4.0)
    assert not wait.status.is_ok
    outcomes = {point.attributes["throttle.outcome"]: point for point in told.points("throttle.client.outcomes")}
    assert outcomes["given up"].attributes["throttle.status"] == "WaitedTooLong"


@virtual_clock.in_virtual_time
async def test_a_block_is_told_and_so_is_each_request_that_it_ends() -> None:
    told = Told()

    def blocked(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, headers={"cf-mitigated": "challenge"})

    with told.tracer.start_as_current_span("a page"):
        async with client(told, blocked) as asking:
            await asking.get("http://example.org/")
            with pytest.raises(HostStopped):
                await asking.get("http://example.org/")
    (span,) = told.spans("a page")
    assert [event.name for event in span.events] == ["throttle.stopped"]


@virtual_clock.in_virtual_time
async def test_metrics_tell_only_so_many_hosts_apart() -> None:
    told = Told(hosts_max=2)
    async with client(told, lambda request: httpx.Response(200)) as asking:
        for name in ("a", "b", "c", "d", "a"):
            await asking.get(f"http://{name}.example/")
    counts = {point.attributes["throttle.host"]: point.value for point in told.points("throttle.client.outcomes")}
    assert counts == {"a.example": 2, "b.example": 1, OTHER: 2}
    assert {span.attributes["throttle.host"] for span in told.spans("throttle.request")} >= {"c.example", "d.example"}


def test_nobody_who_does_not_ask_for_it_loads_it() -> None:
    told = "import sys, throttle.client.httpx; print([name for name in sys.modules if 'opentelemetry' in name])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
