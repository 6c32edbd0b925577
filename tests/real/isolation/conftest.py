"""One node with simulated cards, crishim and a broker, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.rig import CHECKOUT, RigSettings, running
from support.crishim_stage import NODE
from support.isolation_stage import IsolationStage, isolating, node_settings

LOGS = CHECKOUT / ".cache/test/rig-logs-isolation"


@pytest.fixture(scope="package")
def lasting_stage() -> Iterator[IsolationStage]:
    key = Ed25519PrivateKey.generate()
    settings = RigSettings(nodes={NODE: node_settings(key)}, releases=("runc@newer",))
    with running(settings, say=print, keep_logs=LOGS) as rig:
        yield isolating(rig, key)
