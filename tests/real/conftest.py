"""Tests on real components. `rig` is one rig with two nodes for the whole run; a failure shows the end of every log."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from rig.rig import CHECKOUT, Rig, running

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
def lasting_rig() -> Iterator[Rig]:
    with running(say=print, keep_logs=LOGS) as rig:
        yield rig


@pytest.fixture
def rig(lasting_rig: Rig) -> Iterator[Rig]:
    yield lasting_rig
    lasting_rig.cluster.close()
