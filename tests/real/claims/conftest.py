"""One node with simulated cards for claims, and our scheduler, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.rig import CHECKOUT, Rig
from support.claims_stage import ClaimsStage, allocating

LOGS = CHECKOUT / ".cache/test/rig-logs-claims"


@pytest.fixture(scope="package")
def lasting_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimsStage]:
    with allocating(root=tmp_path_factory.mktemp("scheduler"), say=print, keep_logs=LOGS) as stage:
        yield stage


@pytest.fixture
def rig(lasting_stage: ClaimsStage) -> Iterator[Rig]:
    """For the report of a failure, which shows the rig's logs."""
    yield lasting_stage.claims.rig
    lasting_stage.cluster.close()


@pytest.fixture
def stage(lasting_stage: ClaimsStage, rig: Rig) -> Iterator[ClaimsStage]:
    yield lasting_stage
    lasting_stage.claims.clear()
