"""A version's tree on the host: whole, checked and in its place, or nothing changed."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from partage_base.files import UNFINISHED
from partage_cli.rollout.installer import trees
from partage_cli.rollout.installer.trees import TreeRefused, delivered, manifest_of, version_of
from support.trees import a_tree

VERSION = "0.1.0-g000000000001"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return a_tree(tmp_path / "image", VERSION)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    host = tmp_path / "host"
    host.mkdir()
    return host


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode & 0o7777, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def leftovers(host: Path) -> list[Path]:
    return list((host / trees.TREES).glob(f"{UNFINISHED}*"))


def test_it_is_copied_with_its_modes_and_its_manifest(tree: Path, host: Path) -> None:
    target = delivered(tree, host)
    assert target == host / "opt/partage" / VERSION
    assert contents(target) == contents(tree)
    assert leftovers(host) == []


def test_one_that_is_there_and_right_stays_as_it_is(tree: Path, host: Path) -> None:
    before = delivered(tree, host).stat().st_ino
    assert delivered(tree, host).stat().st_ino == before


@pytest.mark.parametrize("damage", ["changed", "missing", "mode", "a link", "its manifest"])
def test_a_damaged_one_is_made_right(tree: Path, host: Path, damage: str) -> None:
    target = delivered(tree, host)
    program = target / "bin/partage"
    match damage:
        case "changed":
            program.write_bytes(b"#!/bin/false\n")
        case "missing":
            program.unlink()
        case "mode":
            program.chmod(0o4755)
        case "a link":
            program.rename(target / "bin/other")
            program.symlink_to("other")
        case _:
            (target / "MANIFEST").unlink()
    assert contents(delivered(tree, host)) == contents(tree)
    assert leftovers(host) == []


def test_what_is_not_as_its_manifest_says_is_not_delivered(tree: Path, host: Path) -> None:
    (tree / "lib/large").write_bytes(b"other bytes")
    with pytest.raises(TreeRefused, match=r"lib/large is not what MANIFEST says"):
        delivered(tree, host)
    assert list((host / "opt/partage").iterdir()) == []


def test_without_room_nothing_is_written_and_it_says_how_much_is_missing(
    tree: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "SPARE_BYTES", 1 << 60)
    with pytest.raises(TreeRefused, match=r"no room .* MiB must be free at /opt/partage, and \d+ MiB are; nothing was"):
        delivered(tree, host)
    assert list((host / "opt/partage").iterdir()) == []


def test_a_disk_that_fills_up_meanwhile_leaves_the_older_version_and_no_rest(
    tree: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = host / "opt/partage/0.1.0-g000000000000"
    older.mkdir(parents=True)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        delivered(tree, host)
    assert list((host / "opt/partage").iterdir()) == [older]


def test_what_a_killed_copy_left_is_cleared_away(tree: Path, host: Path) -> None:
    left = host / "opt/partage" / f"{UNFINISHED}0123"
    (left / "bin").mkdir(parents=True)
    delivered(tree, host)
    assert leftovers(host) == []


@pytest.mark.parametrize(
    "line",
    [
        f"0755 {'0' * 64} ../escape",
        f"0755 {'0' * 64} /etc/passwd",
        f"0755 {'0' * 63} short",
        f"4755 {'0' * 64} setuid",
        "",
    ],
)
def test_a_manifest_with_a_wrong_line_is_refused(tree: Path, line: str) -> None:
    with (tree / "MANIFEST").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(TreeRefused, match="none of a MANIFEST"):
        manifest_of(tree)


def test_names_may_hold_spaces(tree: Path, host: Path) -> None:
    (tree / "lib/with a space").write_bytes(b"")
    with (tree / "MANIFEST").open("a") as file:
        file.write(f"0644 {hashlib.sha256(b'').hexdigest()} lib/with a space\n")
    assert (delivered(tree, host) / "lib/with a space").exists()


@pytest.mark.parametrize("version", ["", "..", "a/b", "\0", "x" * 102])
def test_a_tree_without_a_good_version_is_refused(tree: Path, version: str) -> None:
    (tree / "VERSION").write_text(version)
    with pytest.raises(TreeRefused, match="is no version"):
        version_of(tree)
