"""One node whose cards NVIDIA's device plugin hands out, and all of ours, for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.pools_stage import Pools, pooled

LOGS = CHECKOUT / ".cache/test/rig-logs-pools"


@pytest.fixture(scope="package")
def lasting_pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pools]:
    with pooled(tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS) as pools:
        yield pools


@pytest.fixture
def rig(lasting_pools: Pools) -> Iterator[Rig]:
    """For the report of a failure, which shows the rig's logs."""
    yield lasting_pools.chain.rig
    sys.stdout.write(lasting_pools.chain.scheduler.said[-6000:])
    lasting_pools.chain.rig.cluster.close()


@pytest.fixture
def pools(lasting_pools: Pools, rig: Rig) -> Iterator[Pools]:
    """Each test finds all cards with kubelet."""
    yield lasting_pools
    lasting_pools.chain.clear()
    lasting_pools.wait_all_kubelets()
