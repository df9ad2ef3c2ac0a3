"""Which result the farm meant each URL to have."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.farm import Farm
from benchmarks.farming.plan import AWAY, FAILING, FINE, MISSING, MOVED, HostPlan

STATUS = {FINE: "200", MOVED: "200", AWAY: "200", MISSING: "404", FAILING: "500"}


def meant(plan: HostPlan, path: str) -> set[str]:
    """Statuses or problems; of a host that blocks, before it does and after."""
    if path.startswith("/private/") and plan.robots:
        return {"disallowed"}
    kinds = {STATUS[plan.page(path)]}
    if plan.blocks_after is not None:
        kinds |= {"blocked", "403", "robots unreachable"}
    if plan.page(path) == AWAY:
        kinds |= {"blocked", "403"}  # the next host may block
    return kinds


def check(hosts: Farm, count: int, seed: int, crawl: Callable[..., dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """How many results are not as meant, and the crawl's measures."""
    random = Random(f"mixed urls/{seed}")
    asked: dict[str, tuple[HostPlan, str]] = {}
    while len(asked) < count:
        plan = hosts.plans[int(len(hosts.plans) * random.random() ** 2)]
        path = f"/{'private/' if random.random() < 0.03 else ''}{random.randrange(10**6)}"
        asked[hosts.url(plan, path)] = (plan, path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.jsonl")
        done = crawl(list(asked), robots=True, seed=seed, results=str(file))
        results: Sequence[list[str]] = [json.loads(line) for line in file.read_text().splitlines()]
    wrong = [(url, kind) for url, kind in results if kind not in meant(*asked[url])]
    for url, kind in wrong[:20]:
        print(f"  {url}: {kind}, not {sorted(meant(*asked[url]))}")
    return len(wrong) + len(asked.keys() - {url for url, _ in results}), done
