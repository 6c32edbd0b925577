"""Writing keys: completely or not at all, never over another file, and private from the start."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, KeyKept, KeyRefused, add_pair, load_public_keys, load_signing_key
from partage_base.keyring.files import create, locked, replace
from partage_plugins.api.names import KeyId
from unit.keyring.samples import files_below, new_pair
from unit.keyring.steps import at_step, without_nameless_files

pytestmark = pytest.mark.slow  # each test starts processes


@pytest.fixture(params=["nameless", "named"])
def file_system(request: pytest.FixtureRequest) -> Generator[None]:
    """A file system with nameless files, and one without."""
    with nullcontext() if request.param == "nameless" else without_nameless_files():
        yield


@pytest.fixture
def no_umask() -> Generator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_get_their_modes_whatever_the_umask(
    folders: KeyFolders, file_system: None, no_umask: None
) -> None:
    key = new_pair(folders)
    assert mode(folders.private) == 0o700
    assert mode(folders.private_file(key)) == 0o600
    assert mode(folders.public) == 0o755
    assert mode(folders.public_file(key)) == 0o644


def test_a_private_file_is_private_before_anything_is_written(
    tmp_path: Path, file_system: None, no_umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = os.write

    def watched(descriptor: int, content: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return real(descriptor, content[:50])

    monkeypatch.setattr(os, "write", watched)
    create(tmp_path / "a.key", b"x" * 120, 0o600)
    assert modes == [0o600] * 3
    assert (tmp_path / "a.key").read_bytes() == b"x" * 120


def test_nothing_is_overwritten_and_nothing_is_left_beside_it(tmp_path: Path, file_system: None) -> None:
    create(tmp_path / "a.key", b"first", 0o600)
    with pytest.raises(KeyKept, match=r"a\.key exists and is not overwritten"):
        create(tmp_path / "a.key", b"second", 0o600)
    assert (tmp_path / "a.key").read_bytes() == b"first"
    assert files_below(tmp_path) == ["a.key"]


def test_a_link_in_the_way_is_not_followed(tmp_path: Path, file_system: None) -> None:
    (tmp_path / "a.key").symlink_to("elsewhere")
    with pytest.raises(KeyKept):
        create(tmp_path / "a.key", b"secret", 0o600)
    assert not (tmp_path / "elsewhere").exists()


def test_replacing_gives_the_new_content_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    replace(tmp_path / "signing", b"first", 0o644)
    replace(tmp_path / "signing", b"second", 0o644)
    assert (tmp_path / "signing").read_bytes() == b"second"
    assert files_below(tmp_path) == ["signing"]


def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-0123").write_text("half a k")
    (tmp_path / ".keep").touch()
    with locked(tmp_path):
        pass
    assert files_below(tmp_path) == [".keep"]


def test_the_same_pair_twice_is_refused_and_the_first_stays(folders: KeyFolders) -> None:
    private = Ed25519PrivateKey.generate()
    key = add_pair(folders, private).id
    with pytest.raises(KeyKept):
        add_pair(folders, private)
    assert load_signing_key(folders.private).id == key
    assert list(load_public_keys(folders.public).keys) == [key]


@pytest.mark.parametrize("keys_before", [0, 1])
def test_a_failure_at_any_step_leaves_nothing_half_made(keys_before: int, tmp_path: Path, file_system: None) -> None:
    failed: set[str] = set()
    for number in range(1, 200):
        folders = KeyFolders.below(tmp_path / str(number))
        before = [new_pair(folders) for _ in range(keys_before)]
        with at_step(number, fail) as seen, suppress(OSError, KeyRefused):
            before.append(new_pair(folders))  # counts if the failed step was not needed
        assert visible(folders) == whole(before), f"after a failure of step {number}: {seen}"
        if len(seen) < number:
            break
        failed.add(seen[number - 1])
    assert {"open", "write", "fsync", "link", "flock"} < failed


def whole(keys: list[KeyId]) -> list[str]:
    public, private = [f"keys.d/{key}.pub" for key in keys], [f"signing.d/{key}.key" for key in keys]
    return sorted(public + private + ["signing.d/signing"] * bool(keys))


def visible(folders: KeyFolders) -> list[str]:
    """Files except hidden ones: a file that could not even be unlinked stays hidden until the next writer runs."""
    return [file for file in files_below(folders.public.parent) if "/." not in file]


def fail() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@cache
def killed(change: str, nameless: str) -> list[dict[str, Any]]:
    program = Path(__file__).with_name("killed.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, program, change, nameless], env=environment, capture_output=True, text=True, check=True
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["killed"] for report in reports] == [True] * (len(reports) - 1) + [False]
    return reports


@pytest.mark.parametrize("nameless", ["yes", "no"])
def test_a_kill_at_any_step_of_making_a_pair_leaves_whole_keys_or_none(nameless: str) -> None:
    reports = killed("new", nameless)
    for report in reports:
        visible = [file for file in report["files"] if "/." not in file]
        assert len(visible) == len(report["private"]) + len(report["verify"]) + (report["signing"] is not None)
        assert not [fault for fault in report["faults"] if ".key" in fault or ".pub:" in fault]
        assert report["signing_later"] is not None
    assert {0, 1} == {len(report["private"]) for report in reports}
    assert {0, 1} == {len(report["verify"]) for report in reports}


def test_a_killed_writer_leaves_no_hidden_secret_where_files_need_no_name_and_else_not_for_long() -> None:
    assert not any(report["hidden"] for report in killed("new", "yes"))
    named = killed("new", "no")
    assert any(report["hidden"] for report in named)
    assert not any(report["hidden_later"] for report in named)


@pytest.mark.parametrize("nameless", ["yes", "no"])
def test_a_kill_at_any_step_of_retiring_leaves_a_key_that_signs_and_both_that_verify(nameless: str) -> None:
    for report in killed("retire", nameless):
        assert report["verify"] == report["before"]
        assert report["signing"] in report["private"]
        assert report["faults"] == []


def test_a_full_disk_leaves_nothing_half_made_and_says_so(small_disk: Path) -> None:
    folders = KeyFolders.below(small_disk)
    first = new_pair(folders)
    with pytest.raises(OSError, match=r"No space left on device: '.*/(keys\.d|signing\.d)/.+'"):
        fill(folders)
    pairs = [KeyId(file.stem) for file in folders.private.glob("*.key")]
    assert files_below(small_disk) == whole(pairs)
    assert load_signing_key(folders.private).id == first
    assert set(load_public_keys(folders.public).keys) == set(pairs)


def fill(folders: KeyFolders) -> None:
    for _ in range(100):
        new_pair(folders)
