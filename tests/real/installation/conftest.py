"""One node with a real systemd, for all tests of this folder; each test leaves it switched off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.client.wait import until
from rig.identity.people import TEAM
from rig.rig import CHECKOUT, Rig
from support.switch_stage import SwitchStage, files_of, switch_stage

LOGS = CHECKOUT / ".cache/test/rig-logs-switch"


@pytest.fixture(scope="package")
def lasting_stage() -> Iterator[SwitchStage]:
    with switch_stage(say=print, keep_logs=LOGS) as stage:
        stage.untouched = files_of(stage.machine)
        stage.install()
        yield stage


@pytest.fixture
def rig(lasting_stage: SwitchStage) -> Iterator[Rig]:
    """Registers the rig, whose logs the report of a failure shows."""
    yield lasting_stage.rig
    lasting_stage.rig.cluster.close()


@pytest.fixture
def stage(lasting_stage: SwitchStage, rig: Rig) -> Iterator[SwitchStage]:
    yield lasting_stage
    for pod in rig.cluster.pods.list(TEAM):
        pod.delete_and_wait()
    of_canary = ("find", "/var/lib/kubelet/pods", "-name", "*partage*")
    until("kubelet has cleaned up after the canary", lambda: lasting_stage.machine.run(*of_canary) or None)
