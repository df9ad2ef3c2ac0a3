"""Policy and store against the page's pseudo-code, over drawn histories: the same verdicts, waits and counts.

The store is asked as the middleware asks it; the page keeps every hit in lists and counts (`tests/pseudocode.py`).
Memory, a Valkey and a Redis all play them, so they say the same as each other, too.

Changes made by hand to `admit.lua` and `fleet.lua`, each of which made a test fall, here or beside here:
a hit leaves a microsecond late · one hit more is served · a refused hit is not held · every refused hit is held ·
a stack holds a hit too many · a stack grows beyond its hits · only the first rule holds what is served · one hit too
many is told as left · the wait told is the newest hit's · one bot more runs · what is served adds nothing to the load ·
admissions on their way are not counted · places kept for who was called are given away · the place kept for a sleeper
stands in its own way · one more sleeps · a sleeper that another rule refuses wakes nobody · sleepers wake by arrival
alone · one place wakes two · a told number overwrites an admission on its way · what was sent on a connection that was
given up still counts · a new connection keeps the old one's admissions · a killed worker's share stays · a killed
worker's sleepers stay · a call that was lost keeps its place for ever · a clock that is set back stands still.
"""

import pytest

from tests.door import Door, StoreKind
from tests.histories import History, histories, over, played


def hold_to_the_page(stores: StoreKind, history: History) -> None:
    async def scenario() -> None:
        async with stores.opened() as store:
            await played(Door(store, history.limits), history)

    stores.run(scenario())


@over(histories(), examples=1_000)
def test_policy_and_store_say_what_the_page_says(stores: StoreKind, history: History) -> None:
    hold_to_the_page(stores, history)


@pytest.mark.long
@over(histories(), examples=100_000)
def test_policy_and_store_say_what_the_page_says_in_many_more_histories(stores: StoreKind, history: History) -> None:
    hold_to_the_page(stores, history)
