"""A control plane without nodes: pods are created, refused and bound, and never run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rig.programs.provision import ensure
from rig.control.plane import ControlPlane
from rig.control.settings import ControlSettings
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean


@contextmanager
def control_plane(settings: ControlSettings, *, say: Callable[[str], None] = print) -> Generator[ControlPlane]:
    programs = ensure("etcd", "kubernetes", say=say)
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
