"""From which number in flight on a site gets slower: read from requests of one kind that met different numbers.

Latency is taken as (what this kind of page costs) × s(n/k), s(x) = (1 + x⁶)^(1/6): flat until `k` requests are in
flight, then in proportion. The costs are unknown and drift; `k` is sought. So requests are only compared within blocks
of one kind that ended close together, and over all blocks the squared deviations are summed for each `k` of a grid.

A finished request costs a few sums; the grid is gone through once a block. Never reads a clock.
"""

from collections.abc import Callable
from math import exp, log, sqrt

LEAST_K = 0.7
RATIO = 1.27
GRID = tuple(LEAST_K * RATIO**j for j in range(32))
"""candidates for the number; to 1,157"""
_PLACES = range(len(GRID))
KNEE = 6.0

BIN = 0.1
"""of the logarithm of a number in flight"""
BINS = 82
BLOCK = 64
"""requests of one kind that are compared with each other"""
LEAST_BLOCK = 8
MEMORY = 600
"""requests over which evidence is kept where latencies scatter by 0.4; more where they scatter more"""
LEAST_MEMORY, MOST_MEMORY = 400, 3000
KINDS = 64
DEPENDENT = 0.5
"""what a request's evidence counts for: those that overlap are not independent"""
PRIOR_DEVIATION = 1.0
QUANTILE = 0.5


def slowdown(load: float, k: float) -> float:
    """How many times as long a request takes while `load` are in flight."""
    x = load / k
    if x > 20:
        return x
    return float((1.0 + x**KNEE) ** (1.0 / KNEE))


_SLOWER = [[log(slowdown(exp((b + 0.5) * BIN), k)) for k in GRID] for b in range(BINS)]


def bin_of(load: float) -> int:
    """The place of a mean number in flight, which is at least 1, the request itself."""
    return min(int(log(load) / BIN), BINS - 1) if load > 1.0 else 0


class Group:
    """Requests of a block that found the same number in flight."""

    __slots__ = ("count", "met", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        """of their latencies' logarithms"""
        self.met: dict[int, int] = {}
        """how many met which number on average, over their lives"""


class Block:
    """The last requests of one kind, by the number in flight that they found."""

    __slots__ = ("cost", "count", "groups", "known", "squares", "total")

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}
        self.count = 0
        self.total = 0.0
        self.squares = 0.0
        self.cost = 0.0
        """the logarithm of what such a request takes alone, as last known"""
        self.known = 0
        """requests on which that rests"""

    def add(self, found: int, met: int, latency: float) -> None:
        self.count += 1
        self.total += latency
        self.squares += latency * latency
        if (group := self.groups.get(found)) is None:
            group = self.groups[found] = Group()
        group.count += 1
        group.total += latency
        group.met[met] = group.met.get(met, 0) + 1

    def clear(self) -> None:
        self.groups = {}
        self.count = 0
        self.total = self.squares = 0.0

    def deviations(self) -> list[float]:
        """The sum of squared deviations from the curve, for each `k`."""
        count, total = self.count, self.total
        if len(self.groups) == 1:  # all found the same number: nothing tells one k from another
            return [self.squares - total * total / count] * len(GRID)
        groups = self.groups.values()
        within = self.squares - sum(group.total * group.total / group.count for group in groups)
        rows = [(group.total, group.count, [(_SLOWER[b], n) for b, n in group.met.items()]) for group in groups]
        found: list[float] = []
        for j in _PLACES:
            between, off = within, total
            for latencies, number, met in rows:
                slower = 0.0
                for curve, n in met:
                    slower += curve[j] * n
                left = latencies - slower
                between += left * left / number
                off -= slower
            found.append(between - off * off / count)
        return found


class LoadCurve:
    """What is known of `k`. `expected` is where it is looked for at first: the processors that may be used."""

    def __init__(self, expected: float) -> None:
        self._prior = [-0.5 * (log(k / expected) / PRIOR_DEVIATION) ** 2 for k in GRID]
        self._kinds: dict[object, Block] = {}
        self._deviations = [0.0] * len(GRID)
        self._freedom = 0.0
        """requests, less the means taken of them"""
        self.k = expected
        self._place = min(_PLACES, key=lambda j: abs(log(GRID[j] / expected)))
        self.unimpeded = 0.0
        """what a request takes alone, on average, in the units of `add`"""
        self._costs = 0.0
        self.residual = Residual()

    def add(self, kind: tuple[object, object], found: int, load: float, latency: float) -> None:
        """A request has ended that took `latency`, found `found` in flight and met `load` on average, itself included.

        `kind`: what costs alike, and a class of few kinds; where there are too many, only the class is told apart.
        """
        block = self._kinds.get(kind)
        if block is None:
            if len(self._kinds) >= KINDS:
                kind = None, kind[1]
            block = self._kinds.setdefault(kind, Block())
        place = bin_of(load)
        logarithm = log(latency)
        block.add(bin_of(found), place, logarithm)
        alone = logarithm - _SLOWER[place][self._place]
        if block.known:
            self.residual.add(alone - block.cost)
        block.known = min(block.known + 1, BLOCK)
        block.cost += (alone - block.cost) / block.known
        self._costs = min(self._costs + 1.0, 200.0)
        self.unimpeded += (latency * exp(alone - logarithm) - self.unimpeded) / self._costs
        if block.count >= BLOCK:
            self._fold(block)

    def _fold(self, block: Block) -> None:
        """A block has ended: what it says of `k` is kept, the rest is forgotten."""
        kept = (1 - 1 / self._memory()) ** block.count
        found = block.deviations()
        self._deviations = [kept * old + new for old, new in zip(self._deviations, found, strict=True)]
        self._freedom = kept * self._freedom + block.count - 1
        block.clear()

    def _memory(self) -> float:
        if self._freedom < 1:
            return MOST_MEMORY
        return min(max(MEMORY * self._variance(self._deviations, self._freedom) / 0.16, LEAST_MEMORY), MOST_MEMORY)

    @staticmethod
    def _variance(deviations: list[float], freedom: float) -> float:
        return max(min(deviations) / max(freedom, 1.0), 1e-4)

    def fit(self, most: float) -> float:
        """The likeliest `k`, the weighted median; none above `most` is considered."""
        deviations, freedom = self._deviations, self._freedom
        for block in self._kinds.values():
            if block.count >= LEAST_BLOCK:
                found = block.deviations()
                deviations = [old + new for old, new in zip(deviations, found, strict=True)]
                freedom += block.count - 1
        least = min(deviations)
        scale = DEPENDENT / (2 * self._variance(deviations, freedom))
        weights = [
            exp(max(prior - scale * (deviation - least), -700.0)) if k <= most or j == 0 else 0.0
            for j, (k, prior, deviation) in enumerate(zip(GRID, self._prior, deviations, strict=True))
        ]
        self.k = _median(weights)
        self._place = min(_PLACES, key=lambda j: abs(log(GRID[j] / self.k)))
        return self.k

    def begin_blocks(self) -> None:
        """What comes now is not to be compared with what was before."""
        for block in self._kinds.values():
            if block.count >= LEAST_BLOCK:
                self._fold(block)
            block.clear()
            block.known = 0
        self.residual = Residual()

    def doubt(self) -> None:
        """The site has changed: keep a tenth of the evidence."""
        self.begin_blocks()
        self._deviations = [0.1 * old for old in self._deviations]
        self._freedom *= 0.1


class Residual:
    """Whether latencies have left the curve: the mean of the last deviations, against their scatter."""

    SAMPLES = 25
    FAR = 0.3
    ERRORS = 6.0

    __slots__ = ("_count", "_squares", "_total", "found")

    def __init__(self) -> None:
        self._count = 0
        self._total = self._squares = 0.0
        self.found = 0.0
        """above 0: slower than the curve; below: faster; 0: on it"""

    def add(self, deviation: float) -> None:
        self._count += 1
        self._total += deviation
        self._squares += deviation * deviation
        if self._count == self.SAMPLES:
            mean = self._total / self.SAMPLES
            error = sqrt(max(self._squares / self.SAMPLES - mean * mean, 1e-6) / self.SAMPLES)
            if abs(mean) > max(self.FAR, self.ERRORS * error):
                self.found = mean
            self._count = 0
            self._total = self._squares = 0.0


def _median(weights: list[float]) -> float:
    """The grid's value below which half of the weight lies; between two places, in proportion of the logarithm."""
    half, below = sum(weights) * QUANTILE, 0.0
    for j, weight in enumerate(weights):
        if weight and below + weight >= half:
            return GRID[j] * float(RATIO ** ((half - below) / weight - 0.5))
        below += weight
    return GRID[-1]


Random = Callable[[], float]
