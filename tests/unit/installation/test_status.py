"""A node's reported state: in force means what kubelet was started with and will be, not what was once done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partage_base.condition import Condition, Fault, encode_condition
from partage_cli.installation import turn
from partage_cli.installation.journal import kept, read
from partage_cli.installation.status import status
from partage_plugins.api.places import CRISHIM_CONDITION, KUBELET_SPOKE
from unit.installation.made import CONTAINERD, CRISHIM, kubeadm_node, put

FLAG = "--container-runtime-endpoint="


@pytest.fixture
def switched(tmp_path: Path) -> Path:
    """A node in force."""
    kubeadm_node(tmp_path, flags=FLAG + CRISHIM)
    put(tmp_path, KUBELET_SPOKE, "")
    said(tmp_path, Condition())
    with kept(tmp_path) as journal:
        journal.take_version("1.0")
    turn.arm(tmp_path, "then")
    assert turn.confirm(tmp_path)
    return tmp_path


def said(root: Path, condition: Condition) -> None:
    put(root, CRISHIM_CONDITION, encode_condition(condition).decode())


def test_a_node_in_force_says_so(switched: Path) -> None:
    found = status(switched, read(switched))
    assert (found.in_force, found.why, found.endpoint, found.version) == (True, "", "crishim", "1.0")


def test_what_kubeadm_wrote_since_is_noticed_before_kubelet_starts_again(switched: Path) -> None:
    put(switched, "var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="{FLAG}{CONTAINERD}"\n')
    found = status(switched, read(switched))
    assert (found.in_force, found.endpoint, found.speaks_for_good) == (False, "crishim", False)
    assert "when it starts again" in found.why
    assert "kubeadm-flags.env" in found.why


def test_a_kubelet_that_speaks_to_its_runtime_is_not_in_force_whatever_the_journal_says(switched: Path) -> None:
    kubeadm_node(switched)
    found = status(switched, read(switched))
    assert (found.in_force, found.endpoint) == (False, "containerd")
    assert "switch-on` again" in found.why


@pytest.mark.parametrize("state", ["armed", "turning-back", "turned-back"])
def test_a_switch_that_is_not_confirmed_is_not_in_force(switched: Path, state: str) -> None:
    (switched / "var/lib/partage/node/switch/confirmed").rename(switched / "var/lib/partage/node/switch" / state)
    found = status(switched, read(switched))
    assert (found.in_force, found.switch) == (False, state)
    assert found.armed_until == ("then" if state == "armed" else None)


def test_a_crishim_that_honours_nothing_is_not_in_force_and_kubelet_stays(switched: Path) -> None:
    said(switched, Condition(faults=(Fault("keys", "no keys are there"),)))
    found = status(switched, read(switched))
    assert (found.in_force, found.speaks_for_good) == (False, True)
    assert "no keys are there" in found.why


def test_a_kubelet_that_fell_silent_is_not_in_force(switched: Path) -> None:
    os.utime(switched / KUBELET_SPOKE, (0, 0))
    assert "has not spoken" in status(switched, read(switched)).why


def test_why_the_version_before_is_in_force_is_told(switched: Path) -> None:
    put(switched, "var/lib/partage/node/went-back", "crishim of 1.1 did not start\n")
    assert status(switched, read(switched)).why == "crishim of 1.1 did not start"


def test_a_host_on_which_nothing_was_installed_says_that(tmp_path: Path) -> None:
    found = status(tmp_path, read(tmp_path))
    assert (found.version, found.endpoint, found.switch, found.in_force) == (None, "unknown", None, False)
    assert "partage node install" in found.why
