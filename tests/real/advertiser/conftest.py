"""One rig for all tests of this folder, with an audit log in its API server that records the advertisers' requests.

The kubelet of n1 speaks through crishim, and partage alone hands out n1's two cards. n2 also has two cards; NVIDIA's
device plugin hands them out. Each test starts with no advertiser on either node and nothing published.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_advertiser.liveness_files import LABEL, MIG_LABEL
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.places import INVENTORY_FILE
from rig.client.resources import EVENTS, LEASES, NODES
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE
from rig.machine.components import Component
from rig.nodes.node import NodeSettings
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support.advertiser_stage import DEVICE_PLUGIN_LABEL, AdvertiserStage
from support.audit import Audit
from support.cluster_stage import ClusterStage
from support.crishim import SOCKET
from support.crishim_stage import crishim, public_file
from support.simgpu_stage import device_plugin, install_driver, simgpud

LOGS = CHECKOUT / ".cache/test/rig-logs-advertiser"
OURS, NATIVE = "n1", "n2"


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="package")
def lasting_stage(audit: Audit) -> Iterator[ClusterStage]:
    key = dict([public_file(Ed25519PrivateKey.generate())])
    through_crishim = NodeSettings(runtime_endpoint=f"unix://{SOCKET}", daemons=(crishim(0),), files=key)
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
    plugin.start()
    plugin.wait_ready()


@pytest.fixture
def native(rig: Rig, natives: tuple[Component, Component]) -> Iterator[AdvertiserStage]:
    """The node n2."""
    with staged(rig, NATIVE) as stage:
        yield stage
    rig.cluster.pods.delete_made(grace_s=0)


@contextlib.contextmanager
def staged(rig: Rig, name: str) -> Generator[AdvertiserStage]:
    """Yield the node and restore it afterwards, except for pods and drivers."""
    stage = AdvertiserStage(rig, name)
    try:
        yield stage
    finally:
        for component in stage.started:
            component.kill()
        if stage.started:
            sys.stdout.write(stage.started[-1].tail(60))  # for the report of a failure
        _forget(stage)


def _forget(stage: AdvertiserStage) -> None:
    """Delete everything that was published, on the node and in the API server."""
    stage.machine.run("rm", "-rf", "--", f"/{INVENTORY_FILE}", "/run/partage/advertiser", "/run/partage/broker")
    api = stage.rig.cluster.api
    labels = dict.fromkeys((LABEL, MIG_LABEL, DEVICE_PLUGIN_LABEL))
    api.patch(NODES.at(name=stage.name), {"metadata": {"annotations": {ANNOTATION: None}, "labels": labels}})
    with contextlib.suppress(Refused):  # there is none if the advertiser did not get that far
        api.delete(LEASES.at(OUR_NAMESPACE, stage.name))
    api.delete(EVENTS.at("default"))
