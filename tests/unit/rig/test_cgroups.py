"""A rig removes its own cgroups, and those that rigs share only if it is the last one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.machine import cgroups


@pytest.mark.parametrize("shared", [False, True])
def test_folders_that_rigs_share_are_removed_by_the_last_one(
    *, shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [tmp_path])
    (tmp_path / cgroups.OURS / "3/n1").mkdir(parents=True)
    (tmp_path / "k8s.io/c1").mkdir(parents=True)
    cgroups.remove(3, ["c1"], shared=shared)
    assert not (tmp_path / "k8s.io/c1").exists()
    left = set() if shared else {tmp_path / cgroups.OURS, tmp_path / "k8s.io"}
    assert set(tmp_path.iterdir()) == left
