"""`--check` reports everything that would keep grants from being honoured, and starts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, add_pair
from partage_crishim.cli import mistakes
from partage_crishim.settings import CrishimSettings

pytestmark = pytest.mark.slow  # it starts the plugins' process


def test_nothing_is_wrong_with_a_key_and_the_plugins_that_are_installed(tmp_path: Path) -> None:
    add_pair(KeyFolders.at_root(tmp_path), Ed25519PrivateKey.generate())
    assert mistakes(CrishimSettings(root=tmp_path)) == []
    assert not (tmp_path / "run").exists()


def test_a_missing_key_and_a_blocked_plugin_that_does_not_exist_are_both_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTAGE_PLUGINS_BLOCK", "gpuu")
    told = mistakes(CrishimSettings(root=tmp_path))
    assert len(told) == 2, told
    assert "keys.d" in told[0]
    assert told[1] == "plugin gpuu is blocked and not installed"


def test_a_bad_setting_of_a_plugin_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pair(KeyFolders.at_root(tmp_path), Ed25519PrivateKey.generate())
    monkeypatch.setenv("PARTAGE_GPU_ATTACH", "wishfully")
    (told,) = mistakes(CrishimSettings(root=tmp_path))
    assert "PARTAGE_GPU_ATTACH" in told
    assert "wishfully" in told
