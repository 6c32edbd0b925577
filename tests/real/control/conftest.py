"""A control plane without nodes: pods are created, refused and bound, and never run.

It is these tests' own, since some of them kill parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest

from rig.building.providing import ensure
from rig.control.plane import ControlPlane
from rig.control.settings import ControlSettings
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleaning import clean
from rig.talking.cluster import Cluster

Plane = Callable[[ControlSettings], AbstractContextManager[ControlPlane]]


@contextmanager
def running(settings: ControlSettings) -> Generator[ControlPlane]:
    programs = ensure("etcd", "kubernetes", say=print)
    with slots.claimed(clean) as slot:
        addresses = Addresses(slot.number)
        network.make_bridge(addresses, str(slot.folder))
        control = ControlPlane(addresses, programs, slot.folder, settings)
        try:
            control.start()
            control.wait_ready()
            yield control
        finally:
            for component in control.components:
                component.kill()


@pytest.fixture(scope="session")
def control() -> Generator[ControlPlane]:
    with running(ControlSettings()) as control:
        yield control


@pytest.fixture
def cluster(control: ControlPlane) -> Generator[Cluster]:
    cluster = Cluster(control)
    yield cluster
    cluster.delete_made(grace_s=0)
    cluster.close()


@pytest.fixture
def plane() -> Plane:
    """Makes a control plane with settings of one's own."""
    return running
