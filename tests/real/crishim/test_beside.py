"""Containers without a grant start on a node without cards, even if crishim lacks a part.

Their requests are forwarded byte for byte: the tests of the transport and of a crishim with faults compare the bytes.
"""

from __future__ import annotations

from rig.client.manifests import a_container
from rig.client.pods import Pod
from support.crishim_stage import INVENTORY, Stage, public_file, without_driver

HELD = "partage_crishim_held_total"


def plain_pods(stage: Stage) -> list[Pod]:
    """Pods of every shape.

    Many variables, odd texts, volumes, several containers, probes, and one that asks for all cards.
    """
    many = {f"V{n}": "ü\n\t'\"" * 40 for n in range(200)}
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    volume = {"volumeMounts": [{"name": "own", "mountPath": "/run/partage"}]}
    all_cards = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_MIG_CONFIG_DEVICES": "all"}
    two = [a_container(name, image="busybox", command=["sleep", "600"]) for name in ("main", "side")]
    return [
        stage.idle_pod("plain", env=many, annotations={"nvidia.cdi.k8s.io/main": "nvidia.com/gpu=all"}),
        stage.idle_pod("plain", more=volume, spec={"volumes": [{"name": "own", "emptyDir": {}}]}),
        stage.idle_pod("plain", containers=two),
        stage.idle_pod("plain", env=all_cards, more={"livenessProbe": probe}),
    ]


def test_pods_of_every_shape_pass_while_keys_and_inventory_are_missing(stage: Stage) -> None:
    path, _ = public_file(stage.key)
    stage.machine.path(path).unlink()
    stage.machine.path(INVENTORY).unlink()
    before = stage.metrics()
    with without_driver(stage.machine):
        for pod in plain_pods(stage):
            pod.wait_running()
    held = {name: count - before.get(name, 0) for name, count in stage.metrics().items() if name.startswith(HELD)}
    assert {name: count for name, count in held.items() if count} == {f'{HELD}{{outcome="passed"}}': 5}
