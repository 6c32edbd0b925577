"""A node whose crishim cannot read its settings stays a node: only what has an allocation waits."""

from __future__ import annotations

import pytest

from partage_crishim.condition import CLOSED
from support.crishim_stage import NODE, Stage, whole
from unit.gpu_node.nodes import FIRST

pytestmark = pytest.mark.usefixtures("default_crishim_afterwards")


def test_ordinary_pods_start_and_those_with_an_allocation_wait_until_it_is_mended(stage: Stage) -> None:
    stage.replace("--gaurd", "on", env={"PARTAGE_CRISHIM_ENFORCE": "sternly"})
    stage.idle_pod().wait_running()
    granted = stage.granted_pod(whole(FIRST))
    assert stage.refused(granted) == CLOSED
    assert stage.rig.cluster.nodes.condition(NODE, "Ready")["status"] == "True"
    stage.replace()
    granted.wait_running()
