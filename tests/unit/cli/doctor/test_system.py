"""Kernel, SELinux and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.doctor.daemons import keys, private_keys
from partage_cli.doctor.findings import About, Severity
from partage_cli.doctor.local_node import Unseen
from partage_cli.doctor.system import enforced, kernel, selinux
from unit.cli.doctor.made import Made, only

FOLDER = Path("/run/partage/containers")
RELEASE, UNIFIED, ENFORCE = "proc/sys/kernel/osrelease", "sys/fs/cgroup/cgroup.controllers", "sys/fs/selinux/enforce"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_cgroups_of_version_1_are_a_warning(made: Made) -> None:
    assert only(kernel(made.node)).status is Severity.UNKNOWN
    made.write(RELEASE, "6.1.0-1-amd64\n")
    assert only(kernel(made.node)).status is Severity.WARNING
    made.write(UNIFIED, "cpu memory\n")
    assert only(kernel(made.node)).found == "Linux 6.1.0-1-amd64 with cgroups of version 2"


def test_selinux_matters_only_where_it_is_enforced(made: Made) -> None:
    assert only(selinux(made.node)).found == "is not there"
    made.write(ENFORCE, "0")
    assert only(selinux(made.node)).found == "is permissive"
    made.write(ENFORCE, "1")
    assert only(selinux(made.node)).found.startswith("is enforced")


@pytest.mark.parametrize(
    ("label", "status"),
    [
        ("system_u:object_r:container_file_t:s0", Severity.OK),
        ("system_u:object_r:container_file_t", Severity.OK),
        ("system_u:object_r:var_run_t:s0", Severity.WARNING),
        (Unseen(FOLDER, "is not there", is_missing=True), Severity.OK),
        (Unseen(FOLDER, "Operation not supported"), Severity.UNKNOWN),
    ],
)
def test_containers_reach_the_broker_by_the_folders_label(label: str | Unseen, status: Severity) -> None:
    assert enforced(About("selinux"), FOLDER, label).status is status


def test_a_node_without_keys_believes_nobody(made: Made) -> None:
    assert only(keys(made.node)).status is Severity.WRONG


def test_one_good_key_is_enough_and_a_bad_one_beside_it_a_warning(made: Made) -> None:
    assert only(keys(made.with_key().node)).status is Severity.OK
    made.write("etc/partage/keys.d/0123456789abcdef.pub", "no key").chmod(0o644)
    assert only(keys(made.node)).status is Severity.WARNING


def test_private_halves_on_a_node_are_a_warning(made: Made) -> None:
    made.with_key().write("etc/partage/signing.d/0123456789abcdef.key", "secret")
    assert only(private_keys(made.node)).status is Severity.WARNING
