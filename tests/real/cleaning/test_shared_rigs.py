"""A test that leaves something on a shared rig, or removes something from it, fails; its neighbours do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from suite.pool import Job, Pool

FIXTURES = """
import pytest
from real.conftest import shared_rigs_as_before
from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.control.plane import control_plane
from rig.control.settings import ControlSettings
from rig.shared.watch import Watch

IN_SYSTEM = LEASES.at("partage-system")

@pytest.fixture(scope="session")
def watch_over_rigs(): return Watch(patience_s=0.3)

@pytest.fixture(scope="session")
def control():
    with control_plane(ControlSettings(controller_manager=False, kube_scheduler=False)) as control:
        yield control

@pytest.fixture
def cluster(control):
    cluster = Cluster(control)
    yield cluster
    cluster.close()

@pytest.fixture
def lease(cluster):
    made = []
    def make(name):
        made.append(name)
        cluster.api.create(IN_SYSTEM, {"metadata": {"name": name}, "spec": {}})
    yield make
    for name in made:
        cluster.api.delete(f"{IN_SYSTEM}/{name}")
"""
TESTS = """
from conftest import IN_SYSTEM

def test_with_a_lease_that_its_fixture_deletes(lease): lease("mine")
def test_with_a_lease_that_nobody_deletes(cluster):
    cluster.api.create(IN_SYSTEM, {"metadata": {"name": "forgotten"}, "spec": {}})
def test_that_only_reads(cluster): cluster.api.list(IN_SYSTEM)
def test_that_deletes_what_was_there(cluster): cluster.api.delete(f"{IN_SYSTEM}/forgotten")
def test_without_a_cluster(): pass
def test_that_kills_the_api_server(control): control.apiserver.kill()
"""


@pytest.mark.extended("starts an API server for it; what differs is told by unit/harness")
def test_exactly_those_that_change_what_they_share_fail_and_say_what(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(FIXTURES)
    (folder / "test_it.py").write_text(TESTS)
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "suite.record", "-p", "no:cacheprovider", str(folder))
    job = Job("inner", (*argv, "-c", str(folder / "pytest.ini")), is_pytest=True)
    (done,) = Pool(tmp_path / "logs", tmp_path, computing=1, waiting=1).run([job], lambda _: None)
    failures = dict(each.partition("::")[2].split(": ", 1) for each in done.failures)
    assert failures.keys() == {
        "test_with_a_lease_that_nobody_deletes",
        "test_that_deletes_what_was_there",
        "test_that_kills_the_api_server",
    }, done.output
    assert "left leases/partage-system/forgotten" in failures["test_with_a_lease_that_nobody_deletes"]
    assert "took leases/partage-system/forgotten" in failures["test_that_deletes_what_was_there"]
    assert "the control plane no longer answers" in failures["test_that_kills_the_api_server"]
