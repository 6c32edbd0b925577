"""One cluster in which everything of ours runs, for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.chain_stage import Chain, chained

LOGS = CHECKOUT / ".cache/test/rig-logs-chain"


@pytest.fixture(scope="package")
def lasting_chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with chained(tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS, nvidia_gpu="hami") as chain:
        yield chain


@pytest.fixture
def rig(lasting_chain: Chain) -> Iterator[Rig]:
    """For the report of a failure, which shows the rig's logs."""
    yield lasting_chain.rig
    sys.stdout.write(lasting_chain.scheduler.said[-4000:])
    lasting_chain.rig.cluster.close()


@pytest.fixture
def chain(lasting_chain: Chain, rig: Rig) -> Iterator[Chain]:
    yield lasting_chain
    lasting_chain.clear()
