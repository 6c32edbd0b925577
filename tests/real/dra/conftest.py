"""One node with simulated cards of the pool dra, for all tests of this folder.

PARTAGE_RIG_RELEASES=kubernetes@1.36.2 selects another Kubernetes: the oldest that shares a device.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT
from support.dra_stage import DraStage, claimed

RELEASES = tuple(os.environ.get("PARTAGE_RIG_RELEASES", "").split())
LOGS = CHECKOUT / ".cache/test/rig-logs-dra"


@pytest.fixture(scope="package")
def lasting_stage() -> Iterator[DraStage]:
    with claimed(say=print, keep_logs=LOGS, releases=RELEASES) as stage:
        yield stage
