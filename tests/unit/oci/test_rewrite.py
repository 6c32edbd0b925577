"""The answers of node plugins are applied to a container's OCI configuration, and nothing else of it changes."""

from __future__ import annotations

import copy
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from partage_oci.config_file import device_nodes, read_document, write_document
from partage_oci.rewrite import DeviceNode, read_config, require_confined, rewritten, shown
from partage_oci.words import asked_of
from partage_plugins.api import Adjustment, ContainerKey, Device, Mount
from partage_plugins.errors import Refused

ID = "54593e04" * 8
KEY = ContainerKey("0" * 32)
NODE = DeviceNode("c", 195, 0, 0o666, 0, 44)
CARD = Device(container_path="/dev/nvidia0", host_path="/dev/nvidia0")
HOSTS = f"/var/lib/docker/containers/{ID}/hosts"
DOCUMENT: dict[str, Any] = {
    "ociVersion": "1.0.2",
    "process": {"args": ["sh"], "env": ["PATH=/bin", "A=1", "NVIDIA_VISIBLE_DEVICES=all", "A=2"], "rlimits": []},
    "annotations": {"org.example/x": "y"},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/etc/hosts", "type": "bind", "source": HOSTS, "options": ["rbind", "ro"]},
    ],
    "hooks": {"prestart": [{"path": "/x"}], "createRuntime": [{"path": "/theirs"}]},
    "linux": {
        "namespaces": [{"type": "pid"}, {"type": "network", "path": "/run/netns/x"}],
        "devices": [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}],
        "resources": {
            "devices": [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 1, "access": "rwm"}],
            "memory": {"limit": 1 << 30},
        },
        "cgroupsPath": f"/docker/{ID}",
    },
    "odd": 18446744073709551616,
}


def made(adjustment: Adjustment, document: dict[str, Any] = DOCUMENT) -> dict[str, Any]:
    nodes = [(each, NODE) for each in adjustment.devices]
    return rewritten(document, adjustment, nodes, hook="/opt/partage-oci", key=KEY, annotations={"ours": "1"})


def test_each_part_of_an_adjustment_is_put_where_oci_has_it() -> None:
    before = copy.deepcopy(DOCUMENT)
    adjustment = Adjustment(
        env={"A": "3", "NEW": "x"},
        mounts=(
            Mount(container_path="/etc/ld.so.preload", host_path="/run/p"),
            Mount(container_path="/s", host_path="/h", readonly=False),
        ),
        devices=(CARD,),
        annotations={"theirs": "2"},
        memory_swap_limit_in_bytes=2 << 30,
    )
    found = made(adjustment)
    assert before == DOCUMENT
    assert found["process"]["env"] == ["PATH=/bin", "A=3", "NVIDIA_VISIBLE_DEVICES=all", "NEW=x"]
    library = ["rbind", "ro", "nosuid", "nodev", "rprivate"]
    assert found["mounts"] == [
        *DOCUMENT["mounts"],
        {"destination": "/etc/ld.so.preload", "type": "bind", "source": "/run/p", "options": library},
        {
            "destination": "/s",
            "type": "bind",
            "source": "/h",
            "options": ["rbind", "rw", "nosuid", "nodev", "rprivate"],
        },
    ]
    node = {"type": "c", "major": 195, "minor": 0}
    assert found["linux"]["devices"][1:] == [{"path": "/dev/nvidia0", **node, "fileMode": 0o666, "uid": 0, "gid": 44}]
    assert found["linux"]["resources"]["devices"][2:] == [{"allow": True, **node, "access": "rw"}]
    assert found["linux"]["resources"]["memory"] == {"limit": 1 << 30, "swap": 2 << 30}
    assert found["annotations"] == {"org.example/x": "y", "theirs": "2", "ours": "1"}
    hook = {"path": "/opt/partage-oci", "args": ["/opt/partage-oci", "hook", KEY], "timeout": 10}
    assert found["hooks"] == {"prestart": [{"path": "/x"}], "createRuntime": [{"path": "/theirs"}, hook]}
    changed = {"process", "annotations", "mounts", "hooks", "linux"}
    assert {key: text for key, text in found.items() if key not in changed} == {
        key: text for key, text in DOCUMENT.items() if key not in changed
    }
    assert {**found["linux"], "devices": 0, "resources": 0} == {**DOCUMENT["linux"], "devices": 0, "resources": 0}


def test_a_configuration_that_lacks_all_parts_gets_them() -> None:
    found = made(Adjustment(env={"A": "1"}, devices=(CARD,)), {"process": {}, "linux": None})
    assert found["process"]["env"] == ["A=1"]
    assert len(found["linux"]["devices"]) == len(found["linux"]["resources"]["devices"]) == 1


def test_devices_by_cdi_are_refused_since_no_runtime_would_put_them_in() -> None:
    with pytest.raises(Refused, match="PARTAGE_GPU_ATTACH"):
        made(Adjustment(cdi=("partage.dev/gpu=GPU-1",)))


@pytest.mark.parametrize(
    "rule",
    [
        {"allow": True, "access": "rwm"},
        {"allow": True, "type": "a", "access": "rwm"},
        {"allow": True, "type": "c", "major": 195, "minor": 1, "access": "rw"},
        {"allow": True, "type": "c", "major": -1},
    ],
)
def test_one_that_reaches_every_card_gets_no_share(rule: dict[str, Any]) -> None:
    document = copy.deepcopy(DOCUMENT)
    require_confined(read_config(document))
    document["linux"]["resources"]["devices"].append({"allow": True, "type": "c", "access": "m"})
    require_confined(read_config(document))
    document["linux"]["resources"]["devices"].append(rule)
    with pytest.raises(Refused, match="leave out --privileged"):
        require_confined(read_config(document))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"process": {"capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_ADMIN"]}}}, "leave out --cap-add"),
        ({"linux": {"namespaces": [{"type": "mount"}]}}, "leave out --pid"),
        ({"linux": {"namespaces": [{"type": "pid", "path": "/proc/1/ns/pid"}]}}, "leave out --pid"),
        ({"linux": None}, "leave out --pid"),
    ],
)
def test_one_that_can_undo_its_limits_gets_no_share(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        require_confined(read_config({**DOCUMENT, **changes}))


def test_plugins_see_the_container_as_it_was_asked_for() -> None:
    config = read_config(DOCUMENT)
    asked = asked_of(["PARTAGE_SHARE=300"], {})
    assert asked is not None
    found = shown(config, KEY, asked.pod(ID, memory_bytes=config.memory_bytes), "/usr/bin/runc")
    assert found.env[2:] == (("NVIDIA_VISIBLE_DEVICES", b"all"), ("A", b"2"))
    assert found.mounts == (Mount(container_path="/etc/hosts", host_path=HOSTS),)
    assert [each.container_path for each in found.devices] == ["/dev/fuse"]
    assert (found.key, found.pod.uid, found.runtime.program, found.is_claim) == (KEY, ID, "/usr/bin/runc", False)


def test_the_engines_folder_is_the_last_one_of_the_container() -> None:
    assert read_config(DOCUMENT).folder(ID) == f"/var/lib/docker/containers/{ID}"
    assert not read_config({"mounts": None}).folder(ID)


def test_the_file_is_replaced_whole_with_its_mode_and_numbers_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DOCUMENT))
    path.chmod(0o640)
    document = read_document(path)
    assert document == DOCUMENT
    write_document(path, made(Adjustment(env={"A": "ü"}), document))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_document(path)["odd"] == 18446744073709551616
    assert [each.name for each in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"[" * 100_000, b'{"process":{"env":"A=1"}}', b'{"\\ud80e":1}', b'"\xff"']
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"config\.json"):
        read_config(read_document(path))


def test_a_device_is_what_the_host_has_at_its_path(tmp_path: Path) -> None:
    null = Device(container_path="/dev/nvidia0", host_path="/dev/null")
    ((device, node),) = device_nodes([null])
    assert (device, node.type, node.major, node.minor) == (null, "c", 1, 3)
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(Refused, match="is the driver loaded"):
            device_nodes([Device(container_path="/dev/x", host_path=str(path))])
