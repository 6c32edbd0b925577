"""One rig for all tests of this folder, with an audit log in its API server that records the advertisers' requests.

The kubelet of n1 speaks through crishim, and partage alone hands out n1's two cards. n2 also has two cards; NVIDIA's
device plugin hands them out. Each test starts with no advertiser on either node and nothing published.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.machine.components import Component
from rig.nodes.node import NodeSettings
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support.advertiser_stage import AdvertiserStage, staged
from support.audit import Audit
from support.cluster_stage import ClusterStage
from support.crishim_stage import behind, crishim
from support.simgpu_stage import device_plugin, install_driver, simgpud

LOGS = CHECKOUT / ".cache/test/rig-logs-advertiser"
OURS, NATIVE = "n1", "n2"


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="package")
def lasting_stage(audit: Audit) -> Iterator[ClusterStage]:
    through_crishim = behind(crishim(0), {}, Ed25519PrivateKey.generate())
    settings = RigSettings(nodes={OURS: through_crishim, NATIVE: NodeSettings()}, control=audit.settings())
    with running(settings, say=print, keep_logs=LOGS) as rig:
        for node in rig.nodes.values():
            install_driver(node.machine)
        yield ClusterStage(rig)


@pytest.fixture
def rig(rig: Rig, audit: Audit) -> Rig:
    """Forget requests that were made before the test."""
    audit.begin()
    return rig


@pytest.fixture
def stage(rig: Rig) -> Iterator[AdvertiserStage]:
    """n1, with a freshly loaded driver."""
    driver = rig.nodes[OURS].run(simgpud())
    with staged(rig, OURS) as stage:
        yield stage
    driver.kill()


@pytest.fixture(scope="package")
def natives(lasting_stage: ClusterStage) -> tuple[Component, Component]:
    """The driver and NVIDIA's device plugin of n2.

    All tests share them: kubelet notices another plugin only after a while.
    """
    node = lasting_stage.rig.nodes[NATIVE]
    return node.run(simgpud()), node.run(device_plugin())


@pytest.fixture
def natives_again(natives: tuple[Component, Component]) -> Iterator[None]:
    """Restart the plugin after a test that loses a card.

    It never reports a card healthy again that was once unhealthy.
    """
    yield
    driver, plugin = natives
    plugin.stop()
    driver.restart()
    plugin.restart()


@pytest.fixture
def native(rig: Rig, natives: tuple[Component, Component]) -> Iterator[AdvertiserStage]:
    """The node n2."""
    with staged(rig, NATIVE) as stage:
        yield stage
    rig.cluster.pods.delete_made(grace_s=0)
