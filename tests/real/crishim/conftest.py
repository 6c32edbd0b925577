"""One node whose kubelet speaks through crishim, for all tests of this folder; each test restores it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.control.settings import ControlSettings
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support.crishim_stage import INVENTORY, NODE, Stage, install_devices, inventory, node_settings, public_file

LOGS = CHECKOUT / ".cache/test/rig-logs-crishim"


@pytest.fixture(scope="package")
def lasting_stage() -> Iterator[Stage]:
    key = Ed25519PrivateKey.generate()
    open_to_all = ControlSettings(apiserver_flags={"allow-privileged": "true"}, pod_admission=False)
    settings = RigSettings(nodes={NODE: node_settings(key)}, control=open_to_all, releases=("runc@newer",))
    with running(settings, say=print, keep_logs=LOGS) as rig:
        install_devices(rig.nodes[NODE].machine)
        yield Stage(rig, key, rig.nodes[NODE].daemons["crishim"])


@pytest.fixture
def stage(lasting_stage: Stage, rig: Rig) -> Iterator[Stage]:
    yield lasting_stage
    lasting_stage.clear()
    path, content = public_file(lasting_stage.key)
    lasting_stage.write(path, content)
    lasting_stage.write(INVENTORY, inventory())


@pytest.fixture
def default_crishim_afterwards(stage: Stage) -> Iterator[None]:
    """Restore the default crishim after a test that starts another one."""
    yield
    stage.replace()
