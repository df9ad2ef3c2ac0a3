"""From which number in flight on a site gets slower: read from requests of one kind that met different numbers.

Latency is taken as (what this kind of page costs) × s(n/k), s(x) = (1 + x⁶)^(1/6): flat until `k` requests are in
flight, then in proportion. The costs are unknown and drift; `k` is sought. So requests are only compared within blocks
of one kind that ended close together, and over all blocks the squared deviations are summed for each `k` of a grid.

A finished request costs a few sums; the grid is gone through once a block. Never reads a clock.
"""

from math import exp, log, sqrt

LEAST_K = 0.7
RATIO = 1.27
GRID = tuple(LEAST_K * RATIO**j for j in range(32))
"""candidates for the number; to 1,157"""
_PLACES = range(len(GRID))
_NOTHING = [0.0] * len(GRID)
KNEE = 6.0

BINS_A_UNIT = 10
"""of the logarithm of a number in flight"""
BINS = 82
BLOCK = 64
"""requests of one kind that are compared with each other"""
LEAST_BLOCK = 12
"""that counts before it is full"""
MEMORY = 1000
"""requests over which evidence is kept where latencies scatter by 0.4; more where they scatter more"""
LEAST_MEMORY, MOST_MEMORY = 400, 5000
KINDS = 64
ENOUGH = 500
"""requests behind the evidence, from which on blocks count only when they are full: until then each adds much"""
EACH = 16
"""below it, each number found in flight is a group of its own"""
COSTS = 200
"""requests over which the mean cost is taken"""
DEPENDENT = 0.5
"""what a request's evidence counts for: those that overlap are not independent"""
PRIOR_DEVIATION = 0.8
QUANTILE = 0.5


def slowdown(load: float, k: float) -> float:
    """How many times as long a request takes while `load` are in flight."""
    x = load / k
    if x > 20:
        return x
    return float((1.0 + x**KNEE) ** (1.0 / KNEE))


_SLOWER = [[log(slowdown(exp((b + 0.5) / BINS_A_UNIT), k)) for k in GRID] for b in range(BINS)]
_TIMES = [[exp(slower) for slower in curve] for curve in _SLOWER]


def bin_of(load: float) -> int:
    """The place of the logarithm of a number in flight, which is at least 1, the request itself."""
    place = int(load * BINS_A_UNIT)
    return place if place < BINS else BINS - 1


class Group:
    """Requests of a block that found the same number in flight."""

    __slots__ = ("count", "load", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        """of their latencies' logarithms"""
        self.load = 0.0
        """the sum of the logarithms of what they met"""


class Block:
    """The last requests of one kind, by the number in flight that they found."""

    __slots__ = ("_deviations", "_read_at", "cost", "count", "groups", "known", "squares", "total")

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}
        self.count = 0
        self.total = 0.0
        self.squares = 0.0
        self.cost = 0.0
        """the logarithm of what such a request takes alone, as last known"""
        self.known = 0
        """requests on which that rests"""
        self._deviations: list[float] = _NOTHING
        self._read_at = 0

    def add(self, found: int, load: float, latency: float) -> None:
        self.count += 1
        self.total += latency
        self.squares += latency * latency
        if (group := self.groups.get(found)) is None:
            group = self.groups[found] = Group()
        group.count += 1
        group.total += latency
        group.load += load

    def clear(self) -> None:
        self.groups = {}
        self.count = 0
        self.total = self.squares = 0.0
        self._read_at = 0

    def read(self) -> tuple[list[float], int]:
        """The deviations of a block that is not full, and of how many requests: those of some time ago may do."""
        if self.count >= 1.6 * self._read_at:
            self._deviations, self._read_at = self.deviations(), self.count
        return self._deviations, self._read_at

    def deviations(self) -> list[float]:
        """The sum of squared deviations from the curve, for each `k`."""
        count, total = self.count, self.total
        if len(self.groups) == 1:  # all found the same number: nothing tells one k from another
            return [self.squares - total * total / count] * len(GRID)
        # Of a group all but its mean deviates alike, whatever k is.
        within = self.squares
        found, off = _NOTHING, _NOTHING
        for group in self.groups.values():
            number = group.count
            mean = group.total / number
            within -= number * mean * mean
            curve = _SLOWER[bin_of(group.load / number)]
            found = [sums + number * (mean - slower) ** 2 for sums, slower in zip(found, curve, strict=True)]
            off = [sums + number * slower for sums, slower in zip(off, curve, strict=True)]
        return [within + sums - (total - slower) ** 2 / count for sums, slower in zip(found, off, strict=True)]


class LoadCurve:
    """What is known of `k`. `expected` is where it is looked for at first: the processors that may be used."""

    def __init__(self, expected: float) -> None:
        self._prior = [-0.5 * (log(k / expected) / PRIOR_DEVIATION) ** 2 for k in GRID]
        self._kinds: dict[object, Block] = {}
        self._deviations = [0.0] * len(GRID)
        self._freedom = 0.0
        """requests, less the means taken of them"""
        self.k = self._likeliest = expected
        self._is_read = False
        """`_likeliest` says all that is known"""
        self._place = min(_PLACES, key=lambda j: abs(log(GRID[j] / expected)))
        self.unimpeded = 0.0
        """what a request takes alone, on average, in the units of `add`"""
        self._costs = 0
        self.residual = Residual()

    def add(self, kind: tuple[object, object], found: int, load: float, latency: float) -> None:
        """A request has ended that took `latency` and found `found` in flight, itself included.

        `load`: the logarithm of the number that it met, over its life on average.

        `kind`: what costs alike, and a class of few kinds; where there are too many, only the class is told apart.
        """
        block = self._kinds.get(kind) or self._block_of(kind)
        place = bin_of(load)
        logarithm = log(latency)
        block.add(found if found < EACH else int(log(found) * BINS_A_UNIT), load, logarithm)
        alone = logarithm - _SLOWER[place][self._place]
        if block.known:
            self.residual.add(alone - block.cost)
        if block.known < BLOCK:
            block.known += 1
        block.cost += (alone - block.cost) / block.known
        if self._costs < COSTS:
            self._costs += 1
        self.unimpeded += (latency / _TIMES[place][self._place] - self.unimpeded) / self._costs
        if block.count == BLOCK:
            self._fold(block)

    def _block_of(self, kind: tuple[object, object]) -> Block:
        if len(self._kinds) >= KINDS:
            kind = None, kind[1]
        return self._kinds.setdefault(kind, Block())

    def _fold(self, block: Block) -> None:
        """A block has ended: what it says of `k` is kept, the rest is forgotten."""
        if len(block.groups) == 1:  # it says nothing, and what is known must not fade for it
            return block.clear()
        kept = (1 - 1 / self._memory()) ** block.count
        found = block.deviations()
        self._deviations = [kept * old + new for old, new in zip(self._deviations, found, strict=True)]
        self._freedom = kept * self._freedom + block.count - 1
        self._is_read = False
        return block.clear()

    def _memory(self) -> float:
        if self._freedom < 1:
            return MOST_MEMORY
        return min(max(MEMORY * self._variance(self._deviations, self._freedom) / 0.16, LEAST_MEMORY), MOST_MEMORY)

    @staticmethod
    def _variance(deviations: list[float], freedom: float) -> float:
        return max(min(deviations) / max(freedom, 1.0), 1e-4)

    def fit(self, most: float) -> float:
        """The likeliest `k`: the weighted median, but at most `most`."""
        if not self._is_read:
            self._read()
        k = min(self._likeliest, most)
        if k != self.k:
            self.k = k
            self._place = min(_PLACES, key=lambda j: abs(log(GRID[j] / k)))
        return k

    def _read(self) -> None:
        deviations, freedom = self._deviations, self._freedom
        self._is_read = freedom >= ENOUGH
        if not self._is_read:
            for block in self._kinds.values():
                if block.count >= LEAST_BLOCK:
                    found, count = block.read()
                    deviations = [old + new for old, new in zip(deviations, found, strict=True)]
                    freedom += count - 1
        least = min(deviations)
        scale = DEPENDENT / (2 * self._variance(deviations, freedom))
        weights = [
            exp(max(prior - scale * (deviation - least), -700.0))
            for prior, deviation in zip(self._prior, deviations, strict=True)
        ]
        self._likeliest = _median(weights)

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
        self._is_read = False


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
