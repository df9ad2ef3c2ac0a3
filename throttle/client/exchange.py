"""One polite exchange as a flow: it yields what to do and is sent what happened. No I/O, no clock.

A driver, synchronous or not, is a loop over it:

    flow = exchange(host, wake, clock())
    step = next(flow)
    while True:
        match step:
            case Wait(seconds):     sleep so long, or until `wake` was called      step = flow.send(clock())
            case WaitForSlot():     sleep until `wake` was called                  step = flow.send(clock())
            case Send():            send the request                               step = flow.send(Answer(...))
            case GiveUp(error):     close the last answer, if any; raise error
            case Done(place):       return the last answer; host.release(place, ...) when its body is closed

When a step other than `Done` follows a `Send`, the driver closes the answer it holds. However the loop is left,
`flow.close()` gives back place and turn; after `Done` the place is the driver's.

Most requests wait for nothing and are sent once, and need no flow: `Host.place_at_once` and `heard` are its first turn
and its judgement, for a driver to ask before it begins one.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from throttle.client.answer import Answer, Ending, Failure
from throttle.client.host import Host, Place
from throttle.client.in_flight import Waiter


class Refused(Exception):  # noqa: N818  # named for what happened, as its kinds are
    """The host was not asked, or would not serve. An adapter raises it as its client's own error, too."""

    def __init__(self, message: str, *told: object) -> None:
        super().__init__(message)
        self.told = told  # what a kind of it is made of

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # An adapter's class is nowhere to be found by its name; ours is.
        return next(kind for kind in type(self).__mro__ if kind.__module__ == __name__), self.told


class HostRests(Refused):
    """The host asked for a longer wait than is allowed; come back in `seconds`."""

    def __init__(self, host: str, seconds: float) -> None:
        message = f"{host} asks for {seconds:.0f} s of rest, which is more than may be waited; come back then"
        super().__init__(message, host, seconds)
        self.host = host
        self.seconds = seconds


class HostStopped(Refused):
    """The host answers with a block, not a limit: waiting opens no wall."""

    def __init__(self, host: str, reason: str) -> None:
        message = f"{host} blocks this client ({reason}); slowing down will not help, a person must look"
        super().__init__(message, host, reason)
        self.host = host
        self.reason = reason


class WaitedTooLong(Refused):
    """The request's turn did not come within the `seconds` that it may wait (`Politeness.turn_max`)."""

    def __init__(self, host: str, seconds: float) -> None:
        message = f"no turn at {host} within {seconds:g} s: more is asked of it than its pace allows"
        super().__init__(message, host, seconds)
        self.host = host
        self.seconds = seconds


@dataclass(slots=True)
class Wait:
    seconds: float


@dataclass(slots=True)
class WaitForSlot:
    pass


@dataclass(slots=True)
class Send:
    retries: int


@dataclass(slots=True)
class GiveUp:
    error: Refused


@dataclass(slots=True)
class Done:
    place: Place


# Frozen dataclasses would be tidier, and cost a microsecond each.
Step = Wait | WaitForSlot | Send | GiveUp | Done
Flow = Generator[Step, "float | Answer", None]

_WAIT_FOR_SLOT = WaitForSlot()

# Of a request to a host that has never answered, when there is no connection: mostly its name or port is mistyped.
UNREACHED_RETRIES_MAX = 1


def errors_as(base: type[Exception]) -> dict[type[Refused], Callable[..., Exception]]:
    """Each kind of `Refused` as one that is a `base` as well: who catches a client's own errors catches ours."""
    kinds: tuple[type[Refused], ...] = (HostRests, HostStopped, WaitedTooLong)
    # The module is where the name is found that people should catch.
    return {
        kind: type(kind.__name__, (kind, base), {"__doc__": kind.__doc__, "__module__": "throttle.client"})
        for kind in kinds
    }


def heard(host: Host, place: Place, answer: Answer, retries: int, method: str, is_replayable: bool) -> Ending | None:
    """None when the answer is the caller's; else the request is tried again, and how it ended says after what wait."""
    ending = host.answered(place, answer)
    if ending is Ending.SERVED or not _is_worth_retrying(answer, ending, host):
        return None
    now, politeness = answer.at, host.politeness
    if (
        is_replayable
        and method in politeness.retry_methods
        and retries < _retries_max(answer, host)
        and host.rest_left(now) <= politeness.wait_max
        and host.may_retry(now)
    ):
        return ending
    return None


def exchange(
    host: Host,
    wake: Callable[[], None],
    now: float,
    *,
    method: str = "GET",
    is_replayable: bool = True,
    tried: Ending | None = None,
) -> Flow:
    """The request waits for its turn, is sent, and if it fails is tried again as far as the budget goes.

    `tried` is what `heard` said of it, if it was sent once already; its place is given back.

    A refusal or failure that is not tried again is no error here: the answer is the caller's (`Done`), except
    that a host at rest for too long, or stopped, yields `GiveUp`.
    """
    waiter = Waiter(wake)
    if tried is None:
        host.retry_budget.earn()
    retries = 0
    while True:
        if tried is not None:
            # A refusal has set the whole host at rest, and the queue's order and the scout spread the retries;
            # what failed by itself waits by itself.
            if tried is not Ending.DROPPED:
                pause_until = now + host.politeness.backoff.seconds(retries, host.random)
                while now < pause_until:
                    now = yield Wait(pause_until - now)  # type: ignore[assignment]  # a Wait is answered by a time
            retries += 1
        place: Place | None = None
        try:
            place, now = yield from _turn(host, waiter, now)
            if place is None:
                return
            answer = yield Send(retries)
            assert isinstance(answer, Answer)
            now = answer.at
            tried = heard(host, place, answer, retries, method, is_replayable)
            if tried is None:
                done, place = place, None
                yield Done(done)
                return
        finally:
            host.leave(waiter)
            if place is not None:
                host.release(place)


def _turn(host: Host, waiter: Waiter, now: float) -> Generator[Step, "float | Answer", tuple[Place | None, float]]:
    """A place, once it is this request's turn; None when there will be none."""
    asked_at = now
    while True:
        refused: Refused | None = None
        wait = 0.0
        rest = host.rest_left(now)
        if host.stopped is not None:
            refused = HostStopped(host.name, host.stopped)
        elif rest > host.politeness.wait_max:
            refused = HostRests(host.name, rest)
        else:
            turn = host.ask(waiter, now)
            if isinstance(turn, Place):
                if now > asked_at:
                    host.waited(now, now - asked_at)
                return turn, now
            left = asked_at + host.politeness.turn_max - now
            wait = min(turn, left)
            if left <= 0:
                refused = WaitedTooLong(host.name, host.politeness.turn_max)
        if refused is not None:
            host.gave_up(now, now - asked_at, type(refused).__name__)
            yield GiveUp(refused)
            return None, now
        now = yield Wait(wait) if wait != float("inf") else _WAIT_FOR_SLOT  # type: ignore[assignment]


def _retries_max(answer: Answer, host: Host) -> int:
    most = host.politeness.backoff.retries_max
    if answer.status is Failure.CONNECT and not host.has_answered:
        return min(most, UNREACHED_RETRIES_MAX)
    return most


def _is_worth_retrying(answer: Answer, ending: Ending, host: Host) -> bool:
    if host.stopped is not None:
        return False
    return ending is Ending.DROPPED or isinstance(answer.status, Failure) or answer.status in (500, 502, 504)
