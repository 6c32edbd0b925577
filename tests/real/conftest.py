"""Tests on real components. `rig` is one rig with two nodes for the whole run; a failure shows the end of every log.

A folder that needs another cluster has a `lasting_stage` of its own. A test fails if it leaves something on a rig that
others use, or removes something from it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.nodes.node import NodeSettings
from rig.rig import CHECKOUT, Rig, RigSettings, running
from rig.shared.watch import Watch
from support.cluster_stage import ClusterStage
from support.crishim_stage import NODE, node_settings

LOGS = CHECKOUT / ".cache/test/rig-logs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/real/" in str(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    rig = getattr(item, "funcargs", {}).get("rig")
    if report.failed and isinstance(rig, Rig):
        report.sections.append(("the rig's logs", rig.tails()))
    return report


@pytest.fixture(scope="session")
def watch_over_rigs() -> Watch:
    return Watch()


@pytest.fixture(autouse=True)
def shared_rigs_as_before(watch_over_rigs: Watch) -> Iterator[None]:
    """Set up before all other fixtures of a test and torn down after them.

    Fixtures of a wider scope are set up before it.
    """
    before = watch_over_rigs.before()
    yield
    if changes := watch_over_rigs.after(before):
        pytest.fail(f"the test changed what others share: {'; '.join(changes)}", pytrace=False)


@pytest.fixture(scope="session")
def lasting_stage() -> Iterator[ClusterStage]:
    """Two nodes: only the first one's kubelet speaks through crishim."""
    nodes = {NODE: node_settings(Ed25519PrivateKey.generate()), "n2": NodeSettings()}
    with running(RigSettings(nodes=nodes), say=print, keep_logs=LOGS) as rig:
        yield ClusterStage(rig)


@pytest.fixture
def rig(lasting_stage: ClusterStage) -> Iterator[Rig]:
    """Registers the rig, whose logs the report of a failure shows."""
    yield lasting_stage.rig
    sys.stdout.write(lasting_stage.said)
    lasting_stage.rig.cluster.close()


@pytest.fixture
def stage(lasting_stage: ClusterStage, rig: Rig) -> Iterator[ClusterStage]:
    """The test's pods are deleted afterwards."""
    yield lasting_stage
    lasting_stage.clear()
