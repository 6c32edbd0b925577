"""One cluster in which everything of ours runs, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.chain_stage import Chain, chained

LOGS = CHECKOUT / ".cache/test/rig-logs-chain"


@pytest.fixture(scope="package")
def lasting_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with chained(tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS, nvidia_gpu="hami") as chain:
        yield chain


@pytest.fixture
def chain(lasting_stage: Chain, rig: Rig) -> Iterator[Chain]:
    yield lasting_stage
    lasting_stage.clear()
