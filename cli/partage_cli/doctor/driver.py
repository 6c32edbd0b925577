"""The driver: its kernel module, its libraries, its device nodes.

NVML is not called: a driver that hangs would block this process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, status_of, text_of
from partage_gpu.driver_root import installed_root

_MODULE: Final = "proc/driver/nvidia"
_VERSION: Final = re.compile(r"Kernel Module\b.*?\s([0-9]+(?:\.[0-9]+){1,3})\s")
_MINOR: Final = re.compile(r"^Device Minor:\s*([0-9]{1,5})\s*$", re.MULTILINE)
_LIBRARIES: Final = ("libnvidia-ml", "libcuda")
_CONTROLS: Final = ("nvidiactl", "nvidia-uvm")
_NVIDIA: Final = "0x10de"
_DISPLAY: Final = "0x03"


@dataclass(frozen=True, kw_only=True)
class DriverFacts:
    """The observed facts about the driver."""

    module: str | Unseen
    """Version of the loaded kernel module; empty if its text has none."""
    on_bus: int
    """Cards on the PCI bus."""
    minors: tuple[int, ...] = ()
    """Device minors of the cards that the module drives."""
    devices: frozenset[str] = frozenset()
    """Names of existing device nodes."""
    libraries: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Installed versions of each library."""
    looked_at: tuple[str, ...] = ()
    driver_root: str = "/"


def driver(node: LocalNode) -> Iterator[Finding]:
    """Three findings, or a single one without a driver."""
    root = Path(installed_root(str(node.path(node.driver_root))))
    yield from judged(seen(replace(node, driver_root=Path("/") / root.relative_to(node.root))))


def seen(node: LocalNode) -> DriverFacts:
    """Search below the driver root first, then below the node's root, as the node plugin does."""
    roots = (node.path(node.driver_root), node.root)
    versions = [text_of(root / _MODULE / "version") for root in roots]
    text = next((each for each in versions if isinstance(each, str)), versions[-1])
    return DriverFacts(
        module=text if isinstance(text, Unseen) else _version(text),
        on_bus=_on_bus(node),
        minors=next((minors for root in roots if (minors := _minors(LocalNode(root, node.name)))), ()),
        devices=frozenset(name for root in roots for name in _devices(LocalNode(root, node.name))),
        libraries=tuple((name, _installed(node, name)) for name in _LIBRARIES),
        looked_at=(*(str(root / _MODULE) for root in dict.fromkeys(roots)), str(node.driver("dev"))),
        driver_root=str(node.path(node.driver_root)),
    )


def judged(facts: DriverFacts) -> Iterator[Finding]:
    about = About("driver", facts.looked_at)
    if isinstance(facts.module, Unseen):
        yield _without(about, facts, facts.module)
        return
    yield about.ok(f"kernel module {facts.module or 'of unknown version'} drives {_cards(len(facts.minors))}")
    yield _libraries(facts, facts.module)
    yield _device_nodes(facts)


def _without(about: About, facts: DriverFacts, why: Unseen) -> Finding:
    if not why.is_missing:
        return about.unknown(str(why), do="ask again as root")
    if not facts.on_bus:
        return about.warning(
            "no NVIDIA driver is loaded, and the PCI bus shows no NVIDIA card",
            do="nothing, if this node has no cards; for a driver in a container say --driver-root",
        )
    return about.wrong(
        f"{_cards(facts.on_bus)} on the PCI bus, and NVIDIA's kernel module is not loaded",
        do="install the driver, or `modprobe nvidia` and look at `dmesg`",
    )


def _libraries(facts: DriverFacts, module: str) -> Finding:
    about = About("driver-libraries", (facts.driver_root,))
    missing = [name for name, versions in facts.libraries if not versions]
    if missing:
        return about.wrong(
            f"{' and '.join(missing)} not found below {facts.driver_root}",
            do="install them, or say where they are: driver_root in [common] of the daemons' file, PARTAGE_DRIVER_ROOT "
            "for single ones, --driver-root here",
        )
    others = {f"{name} {', '.join(versions)}" for name, versions in facts.libraries if module not in versions}
    if others and module:
        return about.wrong(
            f"the kernel module is {module} and the libraries are {' and '.join(sorted(others))}",
            do="the driver was updated while it was in use: restart the node, or reload the module",
        )
    return about.ok(f"{' and '.join(name for name, _ in facts.libraries)} {module}")


def _device_nodes(facts: DriverFacts) -> Finding:
    about = About("driver-devices", facts.looked_at[-1:])
    wanted = (*_CONTROLS, *(f"nvidia{minor}" for minor in facts.minors))
    missing = [name for name in wanted if name not in facts.devices]
    if missing:
        return about.wrong(
            f"no device node {', '.join(missing)}",
            do="`nvidia-modprobe -u -c 0` makes them, as `nvidia-smi` does as root",
        )
    return about.ok(f"{len(wanted)} device nodes")


def _cards(count: int) -> str:
    return f"{count} card{'' if count == 1 else 's'}"


def _version(text: str) -> str:
    found = _VERSION.search(text)
    return found[1] if found else ""


def _minors(below: LocalNode) -> tuple[int, ...]:
    folder = below.path(f"{_MODULE}/gpus")
    names = names_in(folder)
    told = [text_of(folder / name / "information") for name in (() if isinstance(names, Unseen) else names)]
    found = [_MINOR.search(text) for text in told if isinstance(text, str)]
    return tuple(sorted(int(each[1]) for each in found if each is not None))


def _devices(below: LocalNode) -> Iterator[str]:
    names = names_in(below.path("dev"))
    for name in () if isinstance(names, Unseen) else names:
        if name.startswith("nvidia"):
            status = status_of(below.path(f"dev/{name}"))
            if not isinstance(status, Unseen) and stat.S_ISCHR(status.st_mode):
                yield name


def _installed(node: LocalNode, library: str) -> tuple[str, ...]:
    pattern = re.compile(rf"{library}\.so\.([0-9]+(?:\.[0-9]+){{1,3}})")
    folders = (f"usr/lib/{os.uname().machine}-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib")
    listed = (names_in(node.driver(folder)) for folder in folders)
    names = [name for each in listed if not isinstance(each, Unseen) for name in each]
    return tuple(sorted({match[1] for name in names if (match := pattern.fullmatch(name))}))


def _on_bus(node: LocalNode) -> int:
    folder = node.path("sys/bus/pci/devices")
    names = names_in(folder)
    return sum(_is_card(folder / name) for name in (() if isinstance(names, Unseen) else names))


def _is_card(device: Path) -> bool:
    vendor, class_ = text_of(device / "vendor"), text_of(device / "class")
    return vendor == f"{_NVIDIA}\n" and isinstance(class_, str) and class_.startswith(_DISPLAY)
