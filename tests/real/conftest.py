"""Tests on real components. `rig` is one rig with two nodes for the whole run; a failure shows the end of every log.

A test that leaves something on a rig that others use fails, and so does one that takes something of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from rig.rig import CHECKOUT, Rig, running
from rig.shared.watch import Watch

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
    """Set up before all other fixtures of a test and torn down after them; wider ones are set up before it."""
    before = watch_over_rigs.before()
    yield
    if changes := watch_over_rigs.after(before):
        pytest.fail(f"the test changed what others share: {'; '.join(changes)}", pytrace=False)


@pytest.fixture(scope="session")
def lasting_rig() -> Iterator[Rig]:
    with running(say=print, keep_logs=LOGS) as rig:
        yield rig


@pytest.fixture
def rig(lasting_rig: Rig) -> Iterator[Rig]:
    yield lasting_rig
    lasting_rig.cluster.close()
