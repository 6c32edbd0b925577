"""The advertiser can tell when kubelet last called."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_crishim.decisions import CREATE_CONTAINER, STATUS
from partage_crishim.kubelet import KubeletSign


def test_only_kubelets_question_for_the_status_is_noted(tmp_path: Path) -> None:
    failed: list[OSError] = []
    note = KubeletSign(tmp_path / "own/kubelet-spoke", failed=failed.append)
    note.note(CREATE_CONTAINER)
    assert not (tmp_path / "own").exists()
    note.note(STATUS)
    assert (tmp_path / "own/kubelet-spoke").stat().st_mode & 0o777 == 0o644
    assert failed == []


def test_a_note_is_taken_once_a_second_at_most_and_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("partage_crishim.kubelet.time.monotonic", lambda: now)
    path = tmp_path / "kubelet-spoke"
    note = KubeletSign(path, failed=lambda error: pytest.fail(str(error)))
    note.note(STATUS)
    path.unlink()
    note.note(STATUS)
    assert not path.exists()
    now = 101.5
    note.note(STATUS)
    assert path.exists()


def test_a_note_that_cannot_be_taken_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed: list[OSError] = []
    KubeletSign(tmp_path / "file/kubelet-spoke", failed=failed.append).note(STATUS)
    assert len(failed) == 1
