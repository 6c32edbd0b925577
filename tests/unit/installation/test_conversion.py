"""Kubelet's files are changed and restored byte for byte, with concurrent writers, and whenever the time runs out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from partage_cli.installation.errors import TurnedBack
from partage_cli.installation.inspection import look
from partage_cli.installation.journal import carry_out, kept, take_back
from partage_cli.installation.places import STATE, WAY_BACK
from partage_cli.installation.switch import go_back
from unit.installation.made import CONTAINERD, CRISHIM, a_host, config, kubeadm_node, put, switch, switched_on

CASES: Final = {
    "configuration": {},
    "kubeadm's flag": {"flags": f"--container-runtime-endpoint={CONTAINERD}"},
    "a flag of people": {"extra": f"KUBELET_EXTRA_ARGS=--container-runtime-endpoint={CONTAINERD}\n"},
}


def a_node(root: Path, case: str = "configuration") -> Path:
    path = kubeadm_node(root, **CASES[case])
    path.chmod(0o640)
    put(root, "var/lib/kubelet/instance-config.yaml", f"containerRuntimeEndpoint: {CONTAINERD}\n")
    return path


def tree_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """The tree's files, without the journal's."""
    return {
        name: (path.stat().st_mode, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and not (name := str(path.relative_to(root))).startswith(STATE)
    }


@pytest.mark.parametrize("case", CASES)
def test_the_files_are_byte_for_byte_as_before_after_the_way_there_and_back(tmp_path: Path, case: str) -> None:
    a_node(tmp_path, case)
    before = tree_of(tmp_path)
    host, _ = a_host(tmp_path)
    steps = switch(host)
    with kept(tmp_path) as journal:
        for _ in range(2):
            carry_out(steps, host, journal, again=True)
        assert tree_of(tmp_path) != before
        take_back(steps, host, journal)
        take_back(steps, host, journal)
    assert tree_of(tmp_path) == before


def test_what_kubeadm_wrote_meanwhile_stays_and_names_the_runtime_of_before(tmp_path: Path) -> None:
    path = kubeadm_node(tmp_path)
    with switched_on(a_host(tmp_path)[0]):
        config(tmp_path, f"containerRuntimeEndpoint: {CRISHIM}", "maxPods: 99")
    assert f"containerRuntimeEndpoint: {CONTAINERD}\nmaxPods: 99" in path.read_text()


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_switch_is_late_where_its_time_runs_out_while_it_changes_files(tmp_path: Path, changed: int) -> None:
    """Kubelet's files stay as the restore script has left them."""
    a_node(tmp_path)
    before = tree_of(tmp_path)
    host, services = a_host(tmp_path)
    services.command = (str(shutil.which("true")),)
    *laying, endpoint = switch(host)
    with kept(tmp_path) as journal:
        journal.done("look", look(host))
        carry_out(laying, host, journal)
        for each in sorted((tmp_path / "var/lib/kubelet").glob(".*.partage-staged"))[:changed]:
            each.replace(each.with_name(each.name.removeprefix(".").removesuffix(".partage-staged")))
        subprocess.run(("/bin/sh", tmp_path / WAY_BACK), check=True)
        with pytest.raises(TurnedBack, match="ran out"):
            carry_out([endpoint], host, journal)
        go_back(host, journal)
        assert set(journal.states) == {"look"}
    assert tree_of(tmp_path) == before
