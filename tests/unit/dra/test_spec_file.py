"""The CDI file of a claim: complete, one per claim, and no other file is touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from partage_base.files import UNFINISHED
from partage_dra.spec_file import SpecFiles, spec_of
from partage_plugins.api import Adjustment, Device, Mount
from partage_plugins.api.claims import ClaimUid
from partage_plugins.api.places import CDI_FOLDER

ONE, OTHER = ClaimUid("a671734a"), ClaimUid("b671734a")
SAID = Adjustment(
    env={"NVIDIA_VISIBLE_DEVICES": "void"},
    mounts=(Mount(container_path="/etc/ld.so.preload", host_path="/run/partage/containers/k/preload"),),
    devices=(Device(container_path="/dev/nvidia0", host_path="/dev/nvidia0"),),
    cdi=("partage.dev/gpu=GPU-1",),
)


@pytest.fixture
def files(tmp_path: Path) -> SpecFiles:
    return SpecFiles(tmp_path)


def test_what_plugins_said_is_one_device_named_by_the_claim() -> None:
    assert spec_of(ONE, SAID) == {
        "cdiVersion": "0.5.0",
        "kind": "partage.dev/share",
        "devices": [
            {
                "name": ONE,
                "containerEdits": {
                    "env": ["NVIDIA_VISIBLE_DEVICES=void"],
                    "mounts": [
                        {
                            "hostPath": "/run/partage/containers/k/preload",
                            "containerPath": "/etc/ld.so.preload",
                            "options": ["ro", "nosuid", "nodev", "rbind"],
                        }
                    ],
                    "deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/nvidia0", "permissions": "rw"}],
                },
            }
        ],
    }


def test_a_file_is_there_whole_and_can_be_read_by_all(files: SpecFiles, tmp_path: Path) -> None:
    assert not files.has(ONE)
    files.write(ONE, SAID)
    (path,) = (tmp_path / CDI_FOLDER).iterdir()
    assert msgspec.json.decode(path.read_bytes()) == spec_of(ONE, SAID)
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.suffix == ".json"
    assert files.has(ONE)
    files.remove(ONE)
    files.remove(ONE)
    assert not files.has(ONE)


def test_the_folder_stays_the_same_one(files: SpecFiles, tmp_path: Path) -> None:
    files.write(ONE, SAID)
    before = (tmp_path / CDI_FOLDER).stat().st_ino
    files.remove(ONE)
    files.write(OTHER, SAID)
    assert (tmp_path / CDI_FOLDER).stat().st_ino == before


def test_of_what_was_left_only_our_own_goes(files: SpecFiles, tmp_path: Path) -> None:
    files.write(ONE, SAID)
    files.write(OTHER, SAID)
    folder = tmp_path / CDI_FOLDER
    for name in ("nvidia.json", "partage.dev-gpu.json", f"{UNFINISHED}ab"):
        (folder / name).write_text("{}")
    files.keep_only({ONE})
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "nvidia.json",
        "partage.dev-gpu.json",
        f"partage.dev-share_{ONE}.json",
    ]
