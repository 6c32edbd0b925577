"""Where the driver can limit containers' memory it gets the limits in force; elsewhere it is left alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from partage_isolation.audit.driver_limits import AGAIN_S, DriverLimits
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.nvml_messages import Limited
from partage_plugins.api.names import CardId
from unit.isolation.watching.scenes import CARD, KEY, MIB, OTHER_KEY, container

ID, OTHER_ID, THIRD_ID = "ab" * 32, "cd" * 32, "ef" * 32
PID = 77
TOP = Path("/sys/fs/cgroup")
GROUP = TOP / "kubepods" / ID
RUNNING = Listing([RuntimeContainer(ID, KEY, PID, running=True)])
NOT_SUPPORTED, NOT_FOUND = 3, 6
Asked = tuple[CardId, Path, int]


@dataclass
class Driver:
    """`answer` is NVML's return code; None is no answer."""

    limiting: object | None = field(default_factory=object)
    answer: int | None = 0
    asked: list[Asked] = field(default_factory=list[Asked])

    async def limit(self, card: CardId, group: Path, limit_bytes: int) -> Limited | None:
        self.asked.append((card, group, limit_bytes))
        await asyncio.sleep(0)
        return None if self.answer is None else Limited(card, str(group), self.answer, "a reason")


@dataclass
class Stage:
    proc: Path
    driver: Driver = field(default_factory=Driver)
    now_s: float = 0.0
    containers: tuple[ContainerFacts, ...] = (container(limit=100 * MIB),)
    listed: Listing = field(default_factory=lambda: RUNNING)

    def __post_init__(self) -> None:
        for name, text in (
            ("self/mountinfo", f"30 23 0:26 / {TOP} rw - cgroup2 cgroup2 rw\n"),
            (f"{PID}/cgroup", f"0::/kubepods/{ID}\n"),
        ):
            (self.proc / name).parent.mkdir(parents=True, exist_ok=True)
            (self.proc / name).write_text(text)
        self.limits = self.made()

    def made(self, *, context_in_limit: bool = True) -> DriverLimits:
        return DriverLimits(self.driver, context_in_limit=context_in_limit, proc=self.proc, clock=lambda: self.now_s)

    async def look(self) -> list[Asked]:
        """What the driver is asked during one look."""
        before = len(self.driver.asked)
        await self.limits.look(lambda: self.containers, self.listed)
        return self.driver.asked[before:]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_a_running_container_is_held_once(stage: Stage) -> None:
    assert stage.limits.held(KEY, CARD) is None
    assert await stage.look() == [(CARD, GROUP, 100 * MIB)]
    assert stage.limits.held(KEY, CARD) == 100 * MIB
    assert await stage.look() == []


async def test_another_limit_is_told_and_a_container_that_ended_is_forgotten(stage: Stage) -> None:
    await stage.look()
    stage.containers = (container(limit=50 * MIB),)
    assert await stage.look() == [(CARD, GROUP, 50 * MIB)]
    stage.listed = Listing()
    assert await stage.look() == []
    assert stage.limits.held(KEY, CARD) is None


async def test_a_driver_that_cannot_is_asked_nothing(stage: Stage) -> None:
    stage.driver.limiting = None
    assert await stage.look() == []
    await stage.limits.permit({KEY}, CARD, 200 * MIB)
    assert stage.driver.asked == []


async def test_a_card_of_which_it_cannot_is_asked_for_once(stage: Stage) -> None:
    stage.driver.answer = NOT_SUPPORTED
    assert len(await stage.look()) == 1
    stage.now_s = 10 * AGAIN_S
    assert await stage.look() == []
    stage.driver.limiting = object()
    assert len(await stage.look()) == 1, "another driver is asked anew"


@pytest.mark.parametrize("answer", [NOT_FOUND, None])
async def test_what_failed_is_tried_again_after_a_while(stage: Stage, answer: int | None) -> None:
    stage.driver.answer = answer
    assert len(await stage.look()) == 1
    assert await stage.look() == []
    assert stage.limits.held(KEY, CARD) is None
    stage.now_s, stage.driver.answer = AGAIN_S, 0
    assert len(await stage.look()) == 1
    assert stage.limits.held(KEY, CARD) == 100 * MIB


async def test_another_driver_is_told_all_again(stage: Stage) -> None:
    await stage.look()
    stage.driver.limiting = object()
    assert await stage.look() == [(CARD, GROUP, 100 * MIB)]


async def test_what_is_to_be_lent_is_permitted_first_and_never_less(stage: Stage) -> None:
    await stage.look()
    await stage.limits.permit({KEY}, CARD, 50 * MIB)
    await stage.limits.permit({OTHER_KEY}, CARD, 200 * MIB)
    assert len(stage.driver.asked) == 1
    await stage.limits.permit({KEY}, CARD, 200 * MIB)
    assert stage.driver.asked[1:] == [(CARD, GROUP, 200 * MIB)]


async def test_a_look_under_way_does_not_take_back_what_was_permitted(stage: Stage) -> None:
    await stage.look()
    stage.containers = (container(limit=50 * MIB),)
    await asyncio.gather(stage.look(), stage.limits.permit({KEY}, CARD, 80 * MIB))
    assert stage.driver.asked[1:] == [(CARD, GROUP, 50 * MIB), (CARD, GROUP, 80 * MIB)]


async def test_where_contexts_come_on_top_the_driver_cannot_hold_the_limit(stage: Stage) -> None:
    stage.limits = stage.made(context_in_limit=False)
    assert await stage.look() == []


async def test_no_limit_is_set_of_mig_instances_nor_of_groups_that_may_have_others_in_them(stage: Stage) -> None:
    (facts,) = stage.containers
    stage.containers = (replace(facts, cards={CardId("MIG-1"): facts.cards[CARD]}),)
    assert await stage.look() == []
    stage.containers = (facts,)
    for elsewhere in (
        RuntimeContainer(THIRD_ID, KEY, PID, running=True),
        RuntimeContainer(OTHER_ID, KEY, None, running=True),
        RuntimeContainer(ID, KEY, PID, running=False),
    ):
        stage.listed = Listing([elsewhere])
        assert await stage.look() == []
