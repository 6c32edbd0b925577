"""Devices and mounts that make cards usable without support by the runtime. Pure.

A card is its device node; all cards share the driver's control nodes, and programs need the driver's libraries. Nothing
runs ldconfig in the container in this case, so each library is mounted under the names that programs load, into both
folders that C libraries search by default: Debian's and Red Hat's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from partage_gpu.node.settings import ATTACH, DEFAULT_CAPABILITIES, DRIVER_ROOT
from partage_plugins.api.containers import Device, Mount
from partage_plugins.api.gpu import Card
from partage_plugins.errors import Refused

CONTROL: Final = "nvidiactl"
UNIFIED_MEMORY: Final = "nvidia-uvm"
CONTROLS: Final = (CONTROL, UNIFIED_MEMORY, "nvidia-uvm-tools")
PROGRAMS: Final = ("nvidia-smi",)
PERSISTENCE: Final = "run/nvidia-persistenced/socket"
"""Socket of the persistence daemon; programs may query it, so NVIDIA's tools mount it into containers, too."""

_COMPUTE: Final = {
    "libcuda": ("libcuda.so.1", "libcuda.so"),
    "libcudadebugger": ("libcudadebugger.so.1",),
    "libnvidia-gpucomp": (),
    "libnvidia-nvvm": ("libnvidia-nvvm.so.4",),
    "libnvidia-opencl": ("libnvidia-opencl.so.1",),
    "libnvidia-ptxjitcompiler": ("libnvidia-ptxjitcompiler.so.1",),
}
_UTILITY: Final = {"libnvidia-ml": ("libnvidia-ml.so.1",), "libnvidia-cfg": ("libnvidia-cfg.so.1",)}
_VIDEO: Final = {
    "libnvcuvid": ("libnvcuvid.so.1",),
    "libnvidia-encode": ("libnvidia-encode.so.1",),
    "libnvidia-opticalflow": ("libnvidia-opticalflow.so.1",),
}
_LIBRARIES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "compute": _COMPUTE,
    "utility": _UTILITY,
    "video": _VIDEO,
}
"""By capability: each library with the names that programs load besides its full one."""
_REQUIRED: Final = {"compute": "libcuda", "utility": "libnvidia-ml"}
LIBRARIES: Final = tuple(library for libraries in _LIBRARIES.values() for library in libraries)
EVERYTHING: Final = frozenset(_LIBRARIES)


class InstalledDriver(Struct, frozen=True, kw_only=True):
    """The driver's files that were found on the node; the values are paths there."""

    version: str
    root: str
    triplet: str
    """The machine's name in Debian's library folders, such as `x86_64-linux-gnu`."""
    cards: Mapping[str, str]
    """Device nodes by card id; cards without one, or with an uncertain one, are left out."""
    controls: Mapping[str, str]
    libraries: Mapping[str, str]
    programs: Mapping[str, str]
    persistence: str | None = None
    """The socket; None if its daemon does not run."""


class RawParts(Struct, frozen=True, kw_only=True):
    """The devices and mounts to add to a container."""

    devices: tuple[Device, ...]
    mounts: tuple[Mount, ...]


def capabilities_of(named: str | None, settings: Iterable[str]) -> frozenset[str]:
    """The capabilities that the container names, else the configured ones, else the default."""
    names = {name.strip() for name in (named or "").split(",")} - {""} or set(settings) or set(DEFAULT_CAPABILITIES)
    if "all" in names:
        return EVERYTHING
    for name in sorted(names - EVERYTHING):
        allowed = ", ".join(sorted(EVERYTHING))
        raise Refused(
            f"partage: the driver's capability {name!r:.80} can't be attached without NVIDIA's tools; "
            f"allowed: {allowed}, all; or set {ATTACH} on the node to another way than raw"
        )
    return EVERYTHING & names


def card_device(card: Card, driver: InstalledDriver) -> Device:
    """The device node of one card."""
    if card.id.startswith("MIG-"):
        raise Refused(
            f"partage: card {card.id} is a MIG instance, which needs CDI with NVIDIA's spec, or NVIDIA's runtime; on "
            "the node, turn CDI on in the container runtime and run nvidia-ctk cdi generate "
            f"--output=/var/run/cdi/nvidia.json, or set {ATTACH}=nvidia-env"
        )
    host_path = driver.cards.get(card.id)
    if host_path is None:
        raise Refused(f"partage: no device node for card {card.id} on this node; is the NVIDIA driver loaded there?")
    return Device(container_path=f"/dev/{host_path.rsplit('/', 1)[-1]}", host_path=host_path)


def shared_parts(driver: InstalledDriver, capabilities: frozenset[str]) -> RawParts:
    """The parts that every container with a card needs."""
    _require_whole(driver, capabilities)
    devices = [Device(container_path=f"/dev/{name}", host_path=path) for name, path in driver.controls.items()]
    mounts = [mount for capability in sorted(capabilities) for mount in _libraries(driver, _LIBRARIES[capability])]
    if "utility" in capabilities:
        mounts += [Mount(container_path=f"/usr/bin/{name}", host_path=path) for name, path in driver.programs.items()]
    if driver.persistence is not None:
        mounts.append(Mount(container_path=f"/{PERSISTENCE}", host_path=driver.persistence))
    return RawParts(devices=tuple(devices), mounts=tuple(mounts))


def raw_parts(cards: Iterable[Card], driver: InstalledDriver, capabilities: frozenset[str]) -> RawParts:
    """All parts that one container with these cards needs."""
    shared = shared_parts(driver, capabilities)
    own = tuple(card_device(card, driver) for card in cards)
    return RawParts(devices=own + shared.devices, mounts=shared.mounts)


def _libraries(driver: InstalledDriver, names: Mapping[str, tuple[str, ...]]) -> Iterable[Mount]:
    folders = (f"/usr/lib/{driver.triplet}", "/usr/lib64")
    for library, loaded_as in names.items():
        if library in driver.libraries:
            path = driver.libraries[library]
            for name in (path.rsplit("/", 1)[-1], *loaded_as):
                for folder in folders:
                    yield Mount(container_path=f"{folder}/{name}", host_path=path)


def _require_whole(driver: InstalledDriver, capabilities: frozenset[str]) -> None:
    """Refuses an incomplete driver, with which the container would start and then fail without a reason."""
    for name in (CONTROL, *([UNIFIED_MEMORY] if "compute" in capabilities else [])):
        if name not in driver.controls:
            raise Refused(f"partage: /dev/{name} is missing on this node; is the NVIDIA driver loaded there?")
    for library in (_REQUIRED[capability] for capability in sorted(capabilities & set(_REQUIRED))):
        if library not in driver.libraries:
            raise Refused(
                f"partage: {library}.so.{driver.version} is not below {driver.root} on this node; "
                f"set {DRIVER_ROOT} there to where the NVIDIA driver is installed"
            )
