"""Policy and store against the page's pseudo-code, over drawn histories: the same verdicts, waits and counts.

The store is asked as the middleware asks it; the page keeps every hit in lists and counts (`tests/pseudocode.py`).
"""

import pytest
from hypothesis import given, settings

from tests.door import Door, StoreKind
from tests.histories import History, histories, played


def hold_to_the_page(stores: StoreKind, history: History) -> None:
    async def scenario() -> None:
        async with stores.opened() as store:
            await played(Door(store, history.limits), history)

    stores.run(scenario())


@settings(max_examples=1_000)
@given(history=histories())
def test_policy_and_store_say_what_the_page_says(stores: StoreKind, history: History) -> None:
    hold_to_the_page(stores, history)


@pytest.mark.long
@settings(max_examples=100_000)
@given(history=histories())
def test_policy_and_store_say_what_the_page_says_in_many_more_histories(stores: StoreKind, history: History) -> None:
    hold_to_the_page(stores, history)


@settings(max_examples=300)
@given(history=histories())
def test_who_returns_a_microsecond_early_is_refused_and_who_returns_in_time_is_served(
    stores: StoreKind, history: History
) -> None:
    """Promise 2, a Retry-After is not a lie: each history is played again up to a refusal, and its caller returns."""

    async def scenario() -> None:
        async with stores.opened() as store:
            refusals = (await played(Door(store, history.limits), history)).refusals
        for place, caller, at, retry_after in refusals[-3:]:
            for early in (1, 0) if retry_after else (0,):
                async with stores.opened() as store:
                    door = Door(store, history.limits)
                    twins = await played(door, history, asks=place)
                    await twins.all_leave()
                    assert await door.is_served(caller, at + retry_after - early) is (early == 0)

    stores.run(scenario())
