"""A node with two simulated cards and NVIDIA's device plugin, and a lone containerd with such cards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig import images
from rig.images.bases import compiled
from rig.lone import LoneRuntime, lone_runtime
from rig.machine.components import Component
from rig.nodes.node import Node
from rig.rig import Rig
from support.cluster_stage import ClusterStage
from support.simgpu_stage import CARDS, CLIENT, DRIVER, RESOURCE, device_plugin, install_driver, simgpud, tell

NODE = "n2"


def client() -> images.Image:
    """An image with a program that prints its cards."""
    return images.glibc().with_files({"/usr/bin/cards": compiled(CLIENT, flags=("-std=gnu11", "-ldl"))})


def wait_allocatable(rig: Rig, number: int) -> None:
    rig.cluster.nodes.wait_allocatable(NODE, RESOURCE, number)


@pytest.fixture(scope="package")
def lasting_cards(lasting_stage: ClusterStage) -> Iterator[Node]:
    node = lasting_stage.rig.nodes[NODE]
    lasting_stage.rig.registry.push(client(), "cards")
    install_driver(node.machine)
    driver = node.run(simgpud())
    yield node
    driver.kill()
    node.machine.run("rm", "-rf", DRIVER)


@pytest.fixture
def rig(rig: Rig, lasting_cards: Node) -> Iterator[Rig]:
    """All cards are healthy again afterwards."""
    yield rig
    for index in range(len(CARDS)):
        tell(lasting_cards.machine, f"restore {index}")


@pytest.fixture
def plugin(rig: Rig) -> Iterator[Component]:
    """NVIDIA's device plugin, restarted: it never reports a card healthy again that was once unhealthy.

    In the end the node reports no cards, so that the next test does not mistake these for its own.
    """
    started = rig.nodes[NODE].run(device_plugin())
    yield started
    started.stop()
    wait_allocatable(rig, 0)


@pytest.fixture(scope="package")
def runtime() -> Iterator[LoneRuntime]:
    """A containerd without Kubernetes, and the same cards."""
    with lone_runtime({"cards": client()}, say=print) as made:
        install_driver(made.machine)
        yield made
