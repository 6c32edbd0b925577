"""One node whose cards NVIDIA's device plugin hands out, and all our components, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.chain_stage import Chain
from support.pools_stage import Pools, pooled

LOGS = CHECKOUT / ".cache/test/rig-logs-pools"


@pytest.fixture(scope="package")
def lasting_pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pools]:
    with pooled(tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS) as pools:
        yield pools


@pytest.fixture(scope="package")
def lasting_stage(lasting_pools: Pools) -> Chain:
    return lasting_pools.chain


@pytest.fixture
def pools(lasting_pools: Pools, rig: Rig) -> Iterator[Pools]:
    """At the start of each test all cards are in kubelet's pool."""
    yield lasting_pools
    lasting_pools.chain.clear()
    lasting_pools.wait_all_kubelets()
