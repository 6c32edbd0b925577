"""Two nodes for all tests of this folder: kubelet of the first speaks through crishim, that of the second does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.nodes.node import NodeSettings
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support.crishim_stage import NODE, node_settings

LOGS = CHECKOUT / ".cache/test/rig-logs-cli"


@pytest.fixture(scope="package")
def lasting_pair() -> Iterator[Rig]:
    nodes = {NODE: node_settings(Ed25519PrivateKey.generate()), "n2": NodeSettings()}
    with running(RigSettings(nodes=nodes), say=print, keep_logs=LOGS) as rig:
        yield rig


@pytest.fixture
def rig(lasting_pair: Rig) -> Iterator[Rig]:
    yield lasting_pair
    lasting_pair.cluster.close()
