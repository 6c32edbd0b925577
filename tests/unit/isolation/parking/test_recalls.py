"""Which reports answer a recall, and which processes are asked again."""

from __future__ import annotations

import asyncio
from typing import cast

from partage_isolation.ledger.budget import Process
from partage_isolation.metrics import Counters
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import Connection
from partage_isolation.wire.notifications import Notifications
from partage_plugins.api.names import ContainerKey


class Signals:
    """Records the numbers of hints."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def hint(self, packet: bytes) -> bool:
        read = wire.read(packet)
        assert read is not None
        self.numbers.append(read.number)
        return True


class Sibling:
    def __init__(self, *, is_prompt: bool = True) -> None:
        self.process = Process(ContainerKey("1" * 32), 10, 1, b"t" * 16, is_prompt=is_prompt)
        self.signals = Signals()
        self.hints = Notifications(Counters())

    async def begin(self) -> asyncio.Task[set[Process]]:
        """Start a recall of unused credit."""
        who = [(self.process, cast("Connection", self.signals))]
        task = asyncio.create_task(self.hints.recall(who, 0))
        await asyncio.sleep(0)
        return task

    def returned(self, number: int) -> bool:
        return self.hints.returned(self.process, 0, number)


async def test_what_it_gives_back_of_its_own_accord_is_no_reply() -> None:
    """The process may keep what it was granted then."""
    sibling = Sibling()
    wait = await sibling.begin()
    assert not sibling.returned(0)
    assert not wait.done()
    assert sibling.returned(sibling.signals.numbers[0])
    assert await wait == {sibling.process}


async def test_a_library_of_before_replies_without_a_number() -> None:
    sibling = Sibling(is_prompt=False)
    wait = await sibling.begin()
    assert sibling.returned(0)
    assert await wait == {sibling.process}


async def test_who_gave_back_a_moment_ago_may_have_been_lent_more_since_and_is_asked_again() -> None:
    sibling = Sibling()
    for number in range(3):
        wait = await sibling.begin()
        assert len(sibling.signals.numbers) == number + 1
        assert sibling.returned(sibling.signals.numbers[-1])
        assert await wait == {sibling.process}


async def test_who_asks_while_a_recall_is_out_waits_for_the_next_reply_with_all_others() -> None:
    sibling = Sibling()
    first, *later = [await sibling.begin() for _ in range(3)]
    assert len(sibling.signals.numbers) == 1
    assert sibling.returned(sibling.signals.numbers[0])
    assert await first == {sibling.process}
    assert not any(wait.done() for wait in later)
    assert sibling.returned(sibling.signals.numbers[1])
    assert await asyncio.gather(*later) == [{sibling.process}] * 2
    assert len(sibling.signals.numbers) == 2
    assert not sibling.process.is_silent


async def test_who_does_not_reply_in_time_is_silent_and_was_not_heard() -> None:
    sibling = Sibling()
    assert await (await sibling.begin()) == set()
    assert sibling.process.is_silent
    assert not sibling.returned(sibling.signals.numbers[0])
