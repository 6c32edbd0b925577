"""A coroutine that is begun before it is waited for does what it would do otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from partage_crishim.ahead import Ahead


def outcome(story: Coroutine[Any, Any, list[str]]) -> list[str]:
    return asyncio.run(story)


async def steps(said: list[str], waits: int) -> str:
    said.append("begun")
    for number in range(waits):
        await asyncio.sleep(0.001 * (number % 2))
        said.append(f"waited {number}")
    return "done"


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_it_begins_at_once_and_goes_on_when_it_is_waited_for(waits: int) -> None:
    async def story() -> list[str]:
        said: list[str] = []
        work = Ahead(partial(steps, said, waits))
        before = work.has_begun
        work.begin()
        assert (before, work.has_begun) == (False, True)
        said.append("other things")
        said.append(await work)
        return said

    assert outcome(story()) == ["begun", "other things", *(f"waited {number}" for number in range(waits)), "done"]


def test_what_it_raises_comes_where_it_got_to() -> None:
    async def raises(*, later: bool) -> None:
        if later:
            await asyncio.sleep(0)
        raise ValueError

    async def story() -> list[str]:
        at_once, later = Ahead(partial(raises, later=False)), Ahead(partial(raises, later=True))
        with pytest.raises(ValueError, match=r"\A\Z"):
            at_once.begin()
        later.begin()
        with pytest.raises(ValueError, match=r"\A\Z"):
            await later
        return []

    outcome(story())


def test_its_own_deadline_holds_while_it_is_waited_for() -> None:
    async def slow() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            return "too late"
        return "never"

    async def story() -> list[str]:
        work = Ahead(slow)
        work.begin()
        return [await work]

    assert outcome(story()) == ["too late"]


async def cleaned(said: list[str]) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        said.append("cleaned up")


def test_one_that_nobody_waits_for_cleans_up_and_one_that_never_began_leaves_nothing() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        work = Ahead(partial(cleaned, said))
        work.begin()
        work.close()
        Ahead(partial(cleaned, said)).close()
        return said

    assert outcome(story()) == ["cleaned up"]


def test_a_cancellation_reaches_it() -> None:
    async def story() -> list[str]:
        said: list[str] = []

        async def waits() -> None:
            work = Ahead(partial(cleaned, said))
            work.begin()
            await work

        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return said

    assert outcome(story()) == ["cleaned up"]


def test_to_wait_for_what_was_not_begun_is_a_mistake() -> None:
    async def story() -> list[str]:
        with pytest.raises(RuntimeError, match="not begun"):
            await Ahead(partial(cleaned, []))
        return []

    outcome(story())
