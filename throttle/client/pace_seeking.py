"""The default pace: finds a limit that nobody tells, and is hardly ever refused."""

from collections import deque
from random import Random

from throttle.client.bucket_fit import Epoch, Fit, bucket_fit
from throttle.client.latency_limit import LatencyLimit
from throttle.client.pace import rest_seconds
from throttle.rate_limit_fields import Quota

# Epochs remembered.
EPOCHS = 6
# A refusal is bought with so many requests served, at least …
REQUESTS_A_REFUSAL = 75
# … and with so many that the rests it costs take this share of the time.
REST_SHARE = 0.03


class SeekingPace:
    def __init__(
        self,
        random: Random,
        *,
        rate: float = 2.0,
        rate_min: float = 0.05,
        rate_max: float = 1000.0,
        in_flight_max: int = 100,
    ) -> None:
        self.rate = rate
        self.capacity = 1.0
        self.rate_min = rate_min
        self.rate_max = rate_max
        self._random = random
        self._gate = LatencyLimit(4, in_flight_max)
        self.in_flight_max: float = self._gate.limit
        self.fit: Fit | None = None
        self._epochs: deque[Epoch] = deque(maxlen=EPOCHS)
        self._points: list[tuple[float, int]] = []  # (time, requests sent until then) where the pace changed
        self._point_rate = rate
        self._sent = 0
        self._plan = 0.0
        self._on_time = 0
        self._level = 0.0
        self._last = float("-inf")
        self._rest: float | None = None
        self._is_new = True
        self._recent: deque[float] = deque(maxlen=256)
        self._latency = 0.1
        self._excess = 0.0
        self._over = 0.0
        self._lock_out: float | None = None
        self._first_drop = 0.0
        self._drops = 0
        self._slot_epoch: Epoch | None = None
        self._slot_answers = 0
        self._gate_before = 0.0
        self._heights: deque[int] = deque(maxlen=400)
        self._window_rate = 0.0
        self._is_dear = False
        self._count = 0
        self._count_from = 0.0
        self._told_last = 1e-9
        self._quota_rate = 0.0
        self._quota_until = self._quota_end = float("-inf")

    # -- hearing

    def sent(self, now: float, height: int) -> None:
        gap = now - self._last
        if self._is_new:
            self._is_new = False
            self._begin(now)
            if not self._count_from:
                self._count_from = now
        elif height >= int(self._gate.limit):
            pass
        elif gap > 1.5 / self.rate + 0.01:
            self._note_point(self._last)
            self._note_point(now)
        else:
            self._on_time += 1
        self._sent += 1
        if self.fit is not None:
            self._level = min(self.fit.burst, self._level + self.fit.rates[2] * min(gap, 60.0)) - 1
        self._last = now
        self._recent.append(now)
        self._gate.sent(height)
        self._steer(now)

    def served(self, now: float, sent_at: float, height: int) -> None:
        self._latency += 0.05 * (now - sent_at - self._latency)
        if self._drops > 1:
            length = sent_at - self._first_drop
            if length <= 20 or (self._lock_out is not None and length < 1.5 * self._lock_out):
                self._lock_out = length
        self._drops = 0
        self._gate.served(now, sent_at, height)
        self._slot_answers += 1
        self._heights.append(height)
        self.in_flight_max = self._gate.limit

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        if in_a_row > 1:
            self._drops = in_a_row
            return rest_seconds(told, in_a_row, first=1.0) * (1 if told else self._random.uniform(0.95, 1.05))
        self._drops = 1
        self._first_drop = sent_at
        epoch = self._epoch(sent_at, told)
        self._is_new = True
        if self._slot_epoch is not None and self._slot_answers >= 60:
            self._slot_epoch = None
        if told is None and height >= 3 and self._slot_epoch is None and self._is_new_height(height):
            self._slot_epoch = epoch
            self._slot_answers = 0
            self._gate_before = self._gate.limit
            self._gate.refused(height - 1, now)
            self.in_flight_max = self._gate.limit
            return self._latency
        if self._slot_epoch is not None:
            self._gate.limit = self._gate_before
            self._epochs.append(self._slot_epoch)
            self._slot_epoch = None
        self._count += self._sent
        if told is not None:
            rate = max(self.rate_min, self._count / max(0.1, now + told - self._count_from))
            is_long = told >= 3 and told * self.rate > 8 and not 0.9 < told / self._told_last < 1.1
            is_same = self._window_rate > 0 and 0.9 < rate / self._window_rate < 1.1
            self._told_last = told
            if is_long or is_same:
                self._window_rate = rate
                self._plan = max(40.0, 1.2 * self._count if is_long else 3 * self._count)
                self._count, self._count_from = 0, now + told
                self.fit = Fit((1.01 * rate, 1.02 * rate, 1.02 * rate, 1.03 * rate, 1.04 * rate), 1.0, 0)
                self._epochs.clear()
                return told
            self._window_rate = 0.0
            self._count, self._count_from = 0, now + told
        self._epochs.append(epoch)
        self.fit = bucket_fit(list(self._epochs))
        rates = self.fit.rates
        for _ in range(len(self._epochs) - self.fit.epochs):
            self._epochs.popleft()
        rest = told if told is not None else self._lock_out or max(0.5, 1.5 / rates[2])
        self._is_dear = rest * rates[2] > 40 and rates[4] < 1.15 * rates[0]
        spread = max(0.01, (rates[4] - rates[0]) / rates[2])
        settled = max(min(160.0, max(REQUESTS_A_REFUSAL, 150 / rates[2])), rest * rates[2] / REST_SHARE)
        self._plan = max(min(40, settled), settled * max(0.25, min(1.0, 0.1 / spread)))
        return rest

    def _is_new_height(self, height: int) -> bool:
        return sum(1 for served in self._heights if served >= height) <= 2

    def _epoch(self, sent_at: float, told: float | None) -> Epoch:
        after = sum(1 for time in self._recent if time > sent_at)
        count = self._sent - 1 - after
        points = [point for point in self._points if point[0] < sent_at and point[1] <= count]
        points.append((sent_at, count))
        pieces = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(points, points[1:], strict=False)]
        return Epoch(self._rest, pieces, told)

    def told(self, now: float, quota: Quota, in_flight: int) -> None:
        end = now + quota.seconds
        self._quota_end = min(self._quota_end, end) if now < self._quota_end else end
        self._quota_rate = max(quota.remaining - in_flight, 0.9) / max(0.05, self._quota_end - now)
        self._quota_until = self._quota_end + 1.0
        self._steer(now)

    # -- saying

    def _begin(self, now: float) -> None:
        """The first request after a rest."""
        self._rest = now - self._last if self._epochs else None
        self._sent = self._on_time = 0
        self._points = [(now, 0)]
        self._over = 0.0
        if self.fit is not None and self._rest is not None:
            self._level = min(self.fit.burst, self._rest * self.fit.rates[2])

    def _note_point(self, now: float) -> None:
        self._points.append((now, self._sent))
        self._point_rate = self.rate

    def _steer(self, now: float) -> None:
        if now < self._quota_until:
            self.rate = min(self.rate_max, self._quota_rate)
            return
        fit = self.fit
        if fit is None:
            if self._on_time >= max(6, 2 * self.rate * self._latency):
                self._on_time = 0
                self._note_point(now)
                self.rate = min(self.rate_max, self.rate * 2)
            return
        progress = self._sent / self._plan
        low, lower, middle, upper, high = fit.rates
        if progress < 1.15:
            self._on_time = 0
            self._excess = 0.0
            self._over = max(0.03, min(0.45, 0.5 / (middle * self._latency)))
            if self._is_dear:
                rate = 0.97 * lower
            elif progress < 0.5:
                rate = lower if self._window_rate else min(lower, 0.99 * middle)
            elif progress < 1:
                rate = (lower * upper) ** 0.5
            else:
                rate = max(upper, 1.01 * middle)
        else:
            if self._on_time >= max(6, 2 * self.rate * self._latency):
                if self._over < 1 or self._excess > 3 * middle:
                    self._on_time = 0
                    self._over *= 2
            self._excess += 1 - middle / self.rate
            rate = max(high, middle * 1.02) * (1 + self._over)
        if not self._is_dear:
            rate *= 1 + min(0.25, max(0.0, self._level - 1) / max(self._plan - self._sent, 0.2 * self._plan))
        self.rate = max(self.rate_min, min(self.rate_max, rate))
        if abs(self.rate - self._point_rate) > 0.05 * self._point_rate:
            self._note_point(now)

