"""What the client does, told to OpenTelemetry: `AsyncThrottledTransport(on_event=Telemetry())`.

It listens to events and nothing else, so it costs nothing where it is not given. Spans are made when what they tell of
is over, in the context of the request that lived through it: below the span that an instrumentation of the client has
open, if one is there, the wait for a turn and the request stand apart.

    throttle.wait       from asking for a turn until the request may leave, or is given up; none if it need not wait
    throttle.request    from leaving until the answer's fields are read; each retry has one

and on the span that is open: `throttle.dropped`, `throttle.pause`, `throttle.retry`, `throttle.stopped` as events.
The metrics, each by `throttle.host`:

    throttle.client.wait.duration       seconds, of requests that had to wait
    throttle.client.request.duration    seconds, with `throttle.outcome`: served, dropped, neutral
    throttle.client.outcomes            requests, with `throttle.outcome` and `throttle.status`; given up ones, too
    throttle.client.retries             requests
    throttle.client.pauses              seconds of rest that a host was given
    throttle.client.pace                requests a second, when it has changed by a tenth

A request that is cancelled while it is out is in none of them.
"""

import time
from collections.abc import Callable, Mapping

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("throttle.client.otel needs opentelemetry-api: pip install 'asgi-throttle[otel]'") from missing

from throttle.client.events import (
    Answered,
    Dropped,
    Event,
    GaveUp,
    RateChanged,
    Rested,
    Retried,
    Stopped,
    Waited,
)

NAME = "throttle.client"
OTHER = "other"
# From a quick answer to the longest wait that is common; the default ones are made for milliseconds.
BOUNDARIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Telemetry:
    """A listener for `on_event`, for any number of clients and threads."""

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        hosts_max: int = 100,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """The first `hosts_max` hosts are told apart in metrics, the rest are «other»; spans name each.

        Without providers those that are set globally are used. `wall_clock` is in nanoseconds, as spans are.
        """
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._hosts_max = hosts_max
        self._hosts: set[str] = set()
        self._wall_clock = wall_clock
        self._waits = meter.create_histogram(
            f"{NAME}.wait.duration",
            "s",
            "How long requests waited for their turn, those that had to",
            explicit_bucket_boundaries_advisory=BOUNDARIES,
        )
        self._requests = meter.create_histogram(
            f"{NAME}.request.duration",
            "s",
            "From leaving until the answer's fields were read",
            explicit_bucket_boundaries_advisory=BOUNDARIES,
        )
        self._outcomes = meter.create_counter(f"{NAME}.outcomes", "{request}", "How requests ended")
        self._retries = meter.create_counter(f"{NAME}.retries", "{request}", "Requests that were sent again")
        self._pauses = meter.create_counter(f"{NAME}.pauses", "s", "Rest that hosts were given")
        self._pace = meter.create_gauge(f"{NAME}.pace", "{request}/s", "Requests a second, as they are paced now")

    def __call__(self, event: Event) -> None:
        host = {"throttle.host": event.host}
        label = self._label(event.host)
        match event:
            case Waited():
                self._waits.record(event.seconds, label)
                self._span("throttle.wait", event.seconds, host)
            case GaveUp():
                self._waits.record(event.waited, label)
                self._outcomes.add(1, label | {"throttle.outcome": "given up", "throttle.status": event.reason})
                self._span("throttle.wait", event.waited, host | {"throttle.reason": event.reason}, is_error=True)
            case Answered():
                outcome = {"throttle.outcome": event.ending}
                self._requests.record(event.seconds, label | outcome)
                outcome["throttle.status"] = event.status
                self._outcomes.add(1, label | outcome)
                self._span("throttle.request", event.seconds, host | outcome)
            case Retried():
                self._retries.add(1, label)
                self._note("throttle.retry", host)
            case Dropped():
                told: dict[str, str | float] = {**host, "throttle.status": event.status}
                if event.told is not None:
                    told["throttle.told"] = event.told
                self._note("throttle.dropped", told)
            case Rested():
                self._pauses.add(event.seconds, label)
                self._note("throttle.pause", {**host, "throttle.seconds": event.seconds})
            case RateChanged():
                self._pace.set(event.after, label)
            case Stopped():
                self._note("throttle.stopped", host | {"throttle.reason": event.reason})

    def _label(self, host: str) -> dict[str, str]:
        """A crawl meets more hosts than a store of metrics bears."""
        if host not in self._hosts:
            if len(self._hosts) >= self._hosts_max:
                host = OTHER
            else:
                self._hosts.add(host)
        return {"throttle.host": host}

    def _span(self, name: str, seconds: float, told: Mapping[str, str | float], *, is_error: bool = False) -> None:
        now = self._wall_clock()
        span = self._tracer.start_span(name, start_time=now - int(seconds * 1e9), attributes=told)
        if is_error:
            span.set_status(trace.StatusCode.ERROR)
        span.end(now)

    def _note(self, name: str, told: Mapping[str, str | float]) -> None:
        trace.get_current_span().add_event(name, told, self._wall_clock())
