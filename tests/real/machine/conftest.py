"""A machine on which containers may be placed, for all tests of this folder that do not make one of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT
from support.machine_image import workloads
from support.machine_stage import MachineStage, machine_up

LOGS = CHECKOUT / ".cache/test/rig-logs-machine"
CARDS = 2
IMAGE = "workloads"


@pytest.fixture(scope="package")
def lasting_stage() -> Iterator[MachineStage]:
    with machine_up(CARDS, say=print, keep_logs=LOGS) as stage:
        yield stage


@pytest.fixture
def image(lasting_stage: MachineStage) -> str:
    """Of the programs that use a card."""
    lasting_stage.registry.push(workloads(), IMAGE)
    return IMAGE


@pytest.fixture
def stage(lasting_stage: MachineStage) -> Iterator[MachineStage]:
    yield lasting_stage
    sys.stdout.write(lasting_stage.said[-4000:])
    if names := lasting_stage.partage("ps", "-a", "-q").split():
        lasting_stage.partage("rm", "-f", *names)
