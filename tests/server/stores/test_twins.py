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
