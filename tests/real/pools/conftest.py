"""One node whose cards NVIDIA's device plugin hands out, and all our components, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.chain_stage import Chain
from support.pools_stage import pooled, wait_all_kubelets

LOGS = CHECKOUT / ".cache/test/rig-logs-pools"


@pytest.fixture(scope="package")
def lasting_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with pooled(tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS) as chain:
        yield chain


@pytest.fixture
def chain(lasting_stage: Chain, rig: Rig) -> Iterator[Chain]:
    """At the start of each test all cards are in kubelet's pool."""
    yield lasting_stage
    lasting_stage.clear()
    wait_all_kubelets(lasting_stage)
