"""The spec file of our own CDI kind: its content, and that it is current when a container needs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from partage_gpu.node.own_spec import republished
from partage_plugins import Refused
from unit.gpu_node.nodes import FIRST, MIG, SAMPLES, SECOND, VERSION, MadeNode, attaches

NVIDIAS: Mapping[str, Any] = json.loads((SAMPLES / "nvidia.json").read_text())


def published(node: MadeNode) -> Any:
    return json.loads(node.own_spec.read_text())


def nodes_of(spec: Any) -> dict[str, list[str]]:
    return {each["name"]: [at["path"] for at in each["containerEdits"]["deviceNodes"]] for each in spec["devices"]}


def changed(**fields: Any) -> str:
    return json.dumps({**NVIDIAS, **fields})


@pytest.mark.parametrize("name", ["nvidia.yaml", "nvidia.json"])
def test_what_nvidia_foresees_for_a_card_is_published_under_our_kind(node: MadeNode, name: str) -> None:
    node.write(f"etc/cdi/{name}", (SAMPLES / name).read_text())
    node.adjusted(FIRST)
    spec = published(node)
    assert spec["kind"] == "partage.dev/gpu"
    assert spec["cdiVersion"] == NVIDIAS["cdiVersion"]
    assert spec["containerEdits"] == NVIDIAS["containerEdits"]
    assert nodes_of(spec) == {FIRST: ["/dev/nvidia1"], SECOND: ["/dev/nvidia0"]}


def test_neither_indices_nor_all_cards_at_once_are_published(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.json", changed())
    node.adjusted(FIRST)
    assert not {"0", "1", "all"} & set(nodes_of(published(node)))


def test_mig_instances_are_published_as_nvidia_foresees_them(node: MadeNode) -> None:
    paths = [{"path": path} for path in ("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap30")]
    mig = {"name": MIG, "annotations": {"a": "b"}, "containerEdits": {"deviceNodes": paths}}
    node.write("etc/cdi/nvidia.json", changed(devices=[mig]))
    assert node.adjusted(MIG).cdi == (f"partage.dev/gpu={MIG}",)
    assert published(node)["devices"] == [mig]


def test_without_nvidias_spec_the_installed_driver_is_published(node: MadeNode) -> None:
    node.with_driver().adjusted(SECOND)
    spec = published(node)
    assert nodes_of(spec) == {FIRST: ["/dev/nvidia1"], SECOND: ["/dev/nvidia0"]}
    shared = [each["path"] for each in spec["containerEdits"]["deviceNodes"]]
    assert shared == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    mounted = {each["containerPath"]: each for each in spec["containerEdits"]["mounts"]}
    assert mounted["/usr/lib64/libcuda.so.1"]["hostPath"].endswith(f"libcuda.so.{VERSION}")
    assert "ro" in mounted["/usr/bin/nvidia-smi"]["options"]


def test_a_card_that_cannot_be_published_holds_up_no_other(node: MadeNode) -> None:
    (node.with_driver().root / "dev/nvidia0").unlink()
    assert attaches(node.adjusted(FIRST), FIRST)
    assert set(nodes_of(published(node))) == {FIRST}
    with pytest.raises(Refused, match=f"no device node for card {SECOND}"):
        node.adjusted(SECOND)


def test_the_folder_that_goes_first_for_runtimes_goes_first_here(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\nmalformed")
    node.write("var/run/cdi/nvidia.json", changed(cdiVersion="0.6.0"))
    node.adjusted(FIRST)
    assert published(node)["cdiVersion"] == "0.6.0"


def test_a_file_that_is_right_is_not_written_again(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.json", changed())
    node.adjusted(FIRST)
    before = node.own_spec.stat()
    node.adjusted(FIRST)
    assert (node.own_spec.stat().st_ino, node.own_spec.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (changed(kind="nvidia.com/gpu "), "its kind is 'nvidia.com/gpu '"),
        (changed(cdiVersion="2.0.0"), "its cdiVersion is '2.0.0'; allowed: 0.3.0 to 1.x"),
        (changed(devices={}), r"Expected `array`, got `object` - at `\$.devices`"),
        (changed(devices=[{"name": FIRST}]), "missing required field `containerEdits`"),
        (changed(devices=NVIDIAS["devices"][:2]), "names no card by UUID; make it with --device-name-strategy=uuid"),
        (changed(devices=NVIDIAS["devices"][2:3] * 2), "names one card twice"),
        (changed(devices=[{"name": FIRST, "containerEdits": {}}]), f"device {FIRST} gives 0 cards"),
        (
            changed(devices=[{**NVIDIAS["devices"][4], "name": FIRST}]),
            f"device {FIRST} gives 2 cards; allowed: its own",
        ),
        (
            changed(containerEdits={"deviceNodes": [{"path": "/dev/nvidia3"}]}),
            "common edits give /dev/nvidia3 to every container",
        ),
        ("[]", "Expected `object`, got `array`"),
    ],
)
def test_a_spec_that_would_give_more_or_less_than_a_card_is_refused(document: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        republished(json.loads(document))


def test_a_card_that_nvidias_spec_lacks_is_refused_with_what_to_do(node: MadeNode) -> None:
    file = node.write("etc/cdi/nvidia.json", changed())
    with pytest.raises(Refused) as refused:
        node.adjusted(MIG)
    assert str(refused.value) == (
        f"partage: NVIDIA's CDI spec {file} on this node can't be used: card {MIG} is not in it; "
        f"make it again there with nvidia-ctk cdi generate --output={file}, or remove it"
    )
