"""A driver that can limit a container's memory itself does so: also for a program without the library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from isolation.audit.holders import MIB, holders
from partage_isolation.audit.driver_limits import DriverLimits
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.nvml import NvmlChild
from partage_plugins.api.names import CardId
from partage_simgpu.node import SimulatedNode
from rig.client.wait import patient
from support.cgroups import control_group, entering
from support.simgpu import NODE, card_uuid, newer_driver, simulated_node
from support.steered import eventually
from unit.isolation.watching.scenes import KEY, container

pytestmark = pytest.mark.slow
CARD = CardId(card_uuid(NODE, 0))
ID = "ab" * 32
CONTEXT_MIB = 516


class Stage:
    """A container with a cgroup and a limit, and the driver of its card."""

    def __init__(self, node: SimulatedNode, nvml: NvmlChild, group: Path, pid: int) -> None:
        self.node, self.nvml, self.group = node, nvml, group
        self.limits = DriverLimits(nvml)
        self._listed = Listing([RuntimeContainer(ID, KEY, pid, running=True)])

    async def look(self, limit_mib: int) -> int | None:
        """Apply the limit; return the driver's limit afterwards, in MiB."""
        async with patient("a child answers"):
            while await self.nvml.use(CARD) is None:  # noqa: ASYNC110  nothing tells of it
                await asyncio.sleep(0.05)
        await self.limits.look(lambda: (_facts(limit_mib),), self._listed)
        held = self.limits.held(KEY, CARD)
        return None if held is None else held // MIB

    def may_hold(self, mib: int) -> bool:
        """Whether a program in the container without our library can allocate this much."""
        try:
            with holders(self.node, mib=mib, before=entering(self.group)):
                return True
        except ValueError:  # it exited without output
            return False


def _facts(limit_mib: int) -> ContainerFacts:
    plain = container(limit=limit_mib * MIB)
    (limits,) = plain.cards.values()
    return ContainerFacts(KEY, plain.pod, plain.container, 1, {CARD: limits})


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(tmp_path, cards=("h100",)) as node:
        yield node


@pytest.fixture
async def stage(node: SimulatedNode) -> AsyncIterator[Stage]:
    nvml = NvmlChild(node.root, deadline_s=600, silent_s=600)
    with control_group(f"cri-containerd-{ID}.scope") as group:
        first = await asyncio.create_subprocess_exec(*entering(group), "sleep", "1000")
        eventually(lambda: str(first.pid) in (group / "cgroup.procs").read_text().split(), "it is in its group")
        try:
            yield Stage(node, nvml, group, first.pid)
        finally:
            first.kill()
            await first.wait()
            await nvml.close()


async def test_a_program_past_the_library_gets_no_more_than_the_containers_limit(stage: Stage) -> None:
    assert stage.may_hold(4096)
    newer_driver(stage.node)
    assert await stage.look(2048) == 2048
    assert stage.may_hold(2048 - CONTEXT_MIB)
    assert not stage.may_hold(2048)
    assert await stage.look(1024) == 1024
    assert not stage.may_hold(2048 - CONTEXT_MIB)
    await stage.limits.permit({KEY}, CARD, 4096 * MIB)
    assert stage.may_hold(2048)


async def test_a_driver_that_was_loaded_anew_is_told_again(stage: Stage) -> None:
    newer_driver(stage.node)
    assert await stage.look(1024) == 1024
    stage.node.restart()
    assert stage.may_hold(2048)
    assert await stage.look(1024) == 1024
    assert not stage.may_hold(2048)


async def test_an_older_driver_is_left_alone(stage: Stage) -> None:
    assert await stage.look(1024) is None
    assert stage.may_hold(2048)
