"""One cluster that runs all of our components, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.chain_stage import Chain, chained

LOGS = CHECKOUT / ".cache/test/rig-logs-chain"


@pytest.fixture(scope="package")
def lasting_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    root, flags = tmp_path_factory.mktemp("scheduler"), ("--metrics-address", "127.0.0.1:0")
    with chained(root, say=print, keep_logs=LOGS, flags=flags, nvidia_gpu="hami") as chain:
        yield chain


@pytest.fixture
def chain(lasting_stage: Chain, rig: Rig) -> Iterator[Chain]:
    yield lasting_stage
    lasting_stage.clear()
