"""The messages of `partage node upgrade` and `uninstall` before they change anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from partage_cli.installation.errors import BadTree, PodsStay
from partage_cli.main import cli
from partage_plugins.api.places import KUBELET_SPOKE
from support.trees import make_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node on which no daemon runs; the program in systemctl's place always fails."""
    (tmp_path / "etc/partage").mkdir(parents=True)
    (tmp_path / "etc/partage/services.json").write_text('{"systemctl":["false"]}')
    make_tree(tmp_path / "opt/partage", "1.0-g1", library=tmp_path)
    (tmp_path / "opt/partage/current").symlink_to("1.0-g1")
    return tmp_path


def said(root: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--root", str(root), "node", *words], standalone_mode=False)


def test_a_dry_run_prints_what_would_change_and_changes_nothing(root: Path) -> None:
    new = make_tree(root / "mnt", "1.1-g2", library=root)
    before = sorted(root.rglob("*"))
    printed = said(root, "upgrade", "--tree", str(new), "--dry-run").output.splitlines()
    assert printed[0] == f"copy {new} to {root}/opt/partage/1.1-g2"
    assert printed[-1] == f"point {root}/opt/partage/current to 1.1-g2; it points to 1.0-g1"
    assert sorted(root.rglob("*")) == before


def test_a_program_that_is_of_no_tree_asks_for_one(root: Path) -> None:
    assert isinstance(said(root, "upgrade").exception, BadTree)


def test_what_would_go_is_printed_and_stays(root: Path) -> None:
    before = sorted(root.rglob("*"))
    printed = said(root, "uninstall", "--dry-run").output.splitlines()
    assert printed == ["evict the pods that hold cards on this node", f"remove {root}/opt/partage"]
    assert sorted(root.rglob("*")) == before


def test_a_kubelet_that_was_pointed_to_crishim_by_hand_is_left_to_who_did_that(root: Path) -> None:
    spoke = root / KUBELET_SPOKE
    spoke.parent.mkdir(parents=True)
    spoke.touch()
    result = said(root, "uninstall")
    assert isinstance(result.exception, PodsStay)
    assert "not by `partage node switch-on`" in str(result.exception)
    assert (root / "opt/partage").exists()
