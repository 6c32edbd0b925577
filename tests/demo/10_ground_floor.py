"""The ground floor at work: a pod is placed, its allocation signed, its container adjusted; forgeries are refused.

Everything here is the real thing: the template plugin behind the façades and the plugin host, real keys, real codecs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_fpga_template.kind import FPGA, FpgaPart
from partage_plugins import PartageError
from partage_plugins.codecs import (
    container_key,
    decode_allocation,
    decode_inventory,
    encode_allocation,
    encode_inventory,
    key_id,
    sign,
    verify,
)
from partage_plugins.errors import DecodeError
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.registry.entry_points import from_paths, tracing
from partage_plugins.registry.registry import Registry
from partage_plugins.sides.scheduler import Record, SchedulerSide, SideSettings
from partage_plugins.vocabulary import (
    Allocation,
    Container,
    ContainerName,
    Granted,
    Inventory,
    Namespace,
    NodeName,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodUid,
    Slot,
)

NODES: Final = {NodeName("n1"): ("fpga0",), NodeName("n2"): ("fpga0", "fpga1", "fpga2"), NodeName("n3"): ()}
POD: Final = PodRef(
    namespace=Namespace("team-a"), name=PodName("encoder"), uid=PodUid("0b54a1f2-53c7-4f0e-9d5c-1f6f3e0c9a11")
)
MAIN: Final = ContainerName("main")


class NothingTaken(Record):
    """What a plugin that is made again would be told; this story never needs it."""

    def nodes(self) -> Iterable[tuple[Slot, NodeName, Inventory]]:
        return ()

    def allocations(self) -> Iterable[tuple[Slot, Allocation]]:
        return ()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def asking(boards: str) -> Pod:
    limits = {"fpga.example.com/boards": boards}
    return Pod(ref=POD, containers=(PodContainer(name=MAIN, limits=limits),))


def refused(what: str, attempt: Callable[[], object]) -> None:
    """Shows that something is refused, and with which words."""
    try:
        attempt()
    except PartageError as no:
        say(f"   {what}\n      ✗ {no}")
        return
    raise SystemExit(f"demo: {what}: was not refused")


def place(side: SchedulerSide, names: list[NodeName]) -> Allocation:
    """The scheduler's part: from a pod to its allocation."""
    request = side.requests(asking("2"))
    slots = np.arange(len(names), dtype=np.int32)
    verdict = side.fits(request, slots)
    codes, reasons = verdict.reasons()
    scores = side.scores(request, slots[verdict.fits])
    say("\n2. The scheduler places it")
    for name, fits, code in zip(names, verdict.fits, codes, strict=True):
        say(f"   {name}: " + ("fits" if fits else str(reasons[code])))
    best = int(slots[verdict.fits][scores.argmax()])
    grants = side.allocate(request, Slot(best))
    allocation = Allocation(gen=1, pod=POD.uid, node=names[best], containers=grants)
    side.take(Slot(best), allocation)
    say(f"   → {names[best]}, {', '.join(grant.board for grant in allocation.of(FPGA)[MAIN])}")
    return allocation


async def adjust(allocation: Allocation, part: Inventory, root: str) -> None:
    plugins = {"fpga": "partage_fpga_template.node:FpgaNode"}
    host = PluginHost(HostSettings(node=allocation.node, root=root, paths=plugins, traced=tracing(os.environ)))
    container = Container(key=container_key(POD.uid, MAIN, 0), pod=POD, name=MAIN)
    raw = decode_allocation(encode_allocation(allocation), ())
    given = Granted(gen=raw.gen, grants=raw.containers[MAIN], parts=decode_inventory(encode_inventory(part), ()).kinds)
    adjusted = await host.adjust(container, given)
    say("\n4. On the node, a child process asks the plugin what the container needs")
    say(f"   container key {container.key}")
    for field, owners in sorted(adjusted.owners.items()):
        say(f"   set {field:<22} by {', '.join(owners)}")
    await host.stop()


def main() -> int:
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the plugin host's child finds the template where we did
    registry = Registry(scheduler_hooks)
    report = registry.load(from_paths({"fpga": "partage_fpga_template.scheduler:FpgaScheduler"}))
    traced = tracing(os.environ)  # PARTAGE_PLUGINS_TRACE=1 make demo
    side = SchedulerSide(registry, NothingTaken(), settings=SideSettings(traced=traced))
    names = list(NODES)
    inventories = [Inventory(kinds={FPGA.name: FpgaPart(boards)} if boards else {}) for boards in NODES.values()]
    for slot, inventory in enumerate(inventories):
        side.node_added(Slot(slot), names[slot], inventory)

    say("partage, the ground floor: a plugin for made-up FPGA boards, end to end\n")
    say(f"1. Plugins are loaded one by one: {report.loaded[0][0]} owns kind {registry.kinds[0].name}")
    say(f"   a pod asks for 2 boards; {', '.join(f'{name} has {len(boards)}' for name, boards in NODES.items())}")
    allocation = place(side, names)

    key = Ed25519PrivateKey.generate()
    trusted = {key_id(key.public_key()): key.public_key()}
    text = encode_allocation(allocation)
    signature = sign(text, key)
    verify(text, signature, trusted)
    say("\n3. The allocation is signed, and travels on the pod")
    say(f"   {text}\n   {signature[:40]}…  verified")

    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "dev").mkdir()
        asyncio.run(adjust(allocation, inventories[names.index(allocation.node)], root))

    say("\n5. What is not as it should be is refused, in words")
    refused("a board more than was signed", lambda: verify(text.replace("fpga1", "fpga2"), signature, trusted))
    refused("signed by somebody else", lambda: verify(text, sign(text, Ed25519PrivateKey.generate()), trusted))
    refused("a field that must be known and is not", lambda: decode_allocation(_critical(text), [FPGA]))
    refused("a pod that asks for NaN boards", lambda: side.requests(asking("NaN")))
    refused("more boards than any node has left", lambda: side.allocate(side.requests(asking("9")), Slot(1)))
    return 0


def _critical(text: str) -> str:
    changed = text.replace('"crit":[]', '"crit":["fpga.overclock"]')
    if changed == text:
        raise DecodeError("demo", path="$.crit", value="missing", allowed="a list to change")
    return changed


if __name__ == "__main__":
    raise SystemExit(main())
