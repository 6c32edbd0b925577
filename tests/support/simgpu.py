"""Simulated nodes for tests.

    with simulated_node(tmp_path, cards=("h100", "l4")) as node:
        told = workload(node, "flood", "--count", "10")  # its line of JSON
    with simulated_node(tmp_path, cards=(card("t4", memory_mib=1024, context_mib=64),)) as node: ...
    with simulated_node(tmp_path, cards=(card("h100", mig=("1g.10gb", "3g.40gb")),)) as node: ...

During development, PARTAGE_SIMGPU=/tmp/my-out makes all of this use the build in that folder, such as one made by `make
-C simgpu/native OUT=/tmp/my-out /tmp/my-out/simgpud`; libraries missing there are left out.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_simgpu.build import built
from partage_simgpu.description import DRIVER, Card, card_uuid, mig_uuid
from partage_simgpu.driver_root import CONF
from partage_simgpu.node import SimulatedNode, make_node
from partage_simgpu.profiles import load_profile

__all__ = [
    "NODE",
    "Card",
    "SimulatedNode",
    "built",
    "card",
    "card_uuid",
    "driver_past",
    "mig_uuid",
    "newer_driver",
    "other_driver",
    "simulated_names",
    "simulated_node",
    "workload",
]

NODE = "test"
_NEWER_DRIVER: Final = "615.71.05"


def card(name: str, *, mig: Sequence[str] = (), **changed: object) -> Card:
    """A card of a profile with changed fields: `card("t4", memory_mib=512)`."""
    return Card(msgspec.structs.replace(load_profile(name), **changed), tuple(mig))


def simulated_names(library: str) -> tuple[set[str], set[str]]:
    """Names that a library of ours simulates, and names that it only exports, all of which share one function."""
    said = subprocess.check_output(["nm", "-D", "--defined-only", str(built() / library)], text=True)
    address_of = {name: address for address, _, name in map(str.split, said.splitlines())}
    ((absent, _),) = Counter(address_of.values()).most_common(1)
    simulated = {name for name, address in address_of.items() if address != absent}
    return simulated, address_of.keys() - simulated


@contextmanager
def simulated_node(
    folder: Path, *, cards: Sequence[str | Card] = ("h100",), name: str = NODE
) -> Generator[SimulatedNode]:
    """A running node with its driver root in `folder`/root. It is removed afterwards in any state."""
    all_cards = [card(one) if isinstance(one, str) else one for one in cards]
    node = make_node(folder / "root", name, all_cards, build=built())
    node.start()
    try:
        yield node
    finally:
        node.stop()


def newer_driver(node: SimulatedNode) -> None:
    """Switch its driver to a branch that enforces cgroup limits."""
    other_driver(node, _NEWER_DRIVER)


def other_driver(node: SimulatedNode, version: str) -> None:
    """Change the driver's version and restart the node."""
    conf = node.root / CONF
    conf.write_text(conf.read_text().replace(f"driver = {DRIVER}", f"driver = {version}"))
    node.restart()


def driver_past(node: SimulatedNode) -> Path:
    """The driver's file under a name that the library does not know, to bypass the library."""
    path = node.root / "driver.so"
    if not path.is_symlink():
        path.symlink_to(node.library("cuda"))
    return path


def workload(node: SimulatedNode, program: str, *arguments: str) -> dict[str, Any]:
    """Run a workload to its end and parse its line; `error` is None unless it failed."""
    done = subprocess.run(
        [built() / program, *arguments], env=node.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), f"{program} ended with {done.returncode}: {done.stderr}"
    told: dict[str, Any] = json.loads(done.stdout)
    return told
