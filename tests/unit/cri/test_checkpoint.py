"""kubelet's checkpoint of device allocations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.cri import RecordedUse, recorded_uses

ENTRY = {
    "PodUID": "u1",
    "ContainerName": "main",
    "ResourceName": "nvidia.com/gpu",
    "DeviceIDs": {"-1": ["GPU-1"], "0": ["GPU-2"]},
    "AllocResp": "aGk=",
}


def _written(folder: Path, document: object) -> Path:
    path = folder / "checkpoint"
    path.write_text(json.dumps(document))
    return path


def test_a_container_has_the_devices_of_all_numa_nodes(tmp_path: Path) -> None:
    path = _written(tmp_path, {"Data": {"PodDeviceEntries": [ENTRY], "RegisteredDevices": {}}, "Checksum": 1})
    assert recorded_uses(path) == (
        RecordedUse(pod_uid="u1", container="main", resource="nvidia.com/gpu", devices=("GPU-1", "GPU-2")),
    )


@pytest.mark.parametrize("entries", [None, []])
def test_a_record_without_entries_says_that_nothing_was_given(tmp_path: Path, entries: object) -> None:
    assert recorded_uses(_written(tmp_path, {"Data": {"PodDeviceEntries": entries}, "Checksum": 1})) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Data": 3}', '{"Data":{"PodDeviceEntries":[{}]}}', "\udcff"])
def test_what_is_no_record_says_nothing_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert recorded_uses(path) is None
    assert recorded_uses(tmp_path / "none") is None


@given(st.binary(max_size=64))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("record") / "checkpoint"
    path.write_bytes(raw)
    assert recorded_uses(path) is None
