"""One pod requests cards and boards: every hook of both sides is called, and the container gets its grants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import ModuleType

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from contract.cards import card, part
from partage_fpga_template.kind import FPGA
from partage_plugins.api import GPU, Allocation, Granted, Inventory, Kind, NodeName, PodRequest, Resources, Slot
from partage_plugins.api.node import NodeContext
from partage_plugins.codecs import (
    decode_allocation,
    decode_inventory,
    encode_allocation,
    encode_inventory,
    key_id,
    sign,
    verify,
)
from partage_plugins.framework.node import NodeFramework
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import node as node_hooks
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.calls import Activity, Call
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.registry.registry import Registry
from partage_plugins.testing.examples import container, pod
from partage_plugins.testing.fixtures import PluginHosts
from partage_plugins.testing.node_stage import RunningHost
from support.sides import Record

NODE = NodeName("node-0")
ON_NODE = {"gpu": "contract.cards:GpuNode", "fpga": "partage_fpga_template.node:FpgaNode"}
IN_SCHEDULER = {
    "native-dialect": "partage_dialects.native:NativeDialect",
    "gpu": "partage_gpu.allocator:GpuAllocator",
    "fpga": "partage_fpga_template.scheduler:FpgaScheduler",
}
POD = pod({"partage.dev/gpu-milli": "500", "fpga.example.com/boards": "2"}, {"fpga.example.com/boards": "1"})


class Seen(Activity):
    """Counts calls, by hook and plugin."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[tuple[str, str]] = Counter()

    def enter(self, call: Call) -> None:
        self.calls[call.hook, call.plugin] += 1

    @property
    def hooks(self) -> set[str]:
        return {hook for hook, _ in self.calls}


class Cluster:
    """A scheduler framework with three nodes: cards and boards, boards only, and neither."""

    def __init__(self, inventory: bytes) -> None:
        self.seen = Seen()
        self.registry = loaded(scheduler_hooks, IN_SCHEDULER)
        self.framework = SchedulerFramework(self.registry, Record(), activity=self.seen)
        self.inventory = decode_inventory(inventory, self.registry.kinds)
        boards = self.inventory.part(FPGA)
        boards_only = Inventory(kinds={FPGA.name: boards})
        for slot, each in enumerate((Inventory(kinds={}), self.inventory, boards_only)):
            self.framework.node_added(Slot(slot), NodeName(f"node-{slot}"), each)

    def reasons(self, request: PodRequest) -> list[str]:
        verdict = self.framework.fits(request, np.arange(3, dtype=np.int32))
        codes, table = verdict.reasons()
        return ["" if fits else str(table[code]) for fits, code in zip(verdict.fits, codes, strict=True)]

    def allocated(self, request: PodRequest) -> str:
        """The allocation on the node with both, as written on the pod."""
        grants = self.framework.allocate(request, Slot(1))
        return encode_allocation(Allocation(gen=1, pod=request.pod.uid, node=NodeName("node-1"), containers=grants))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with two cards and three boards."""
    (tmp_path / "dev").mkdir()
    for number in range(3):
        (tmp_path / f"dev/fpga{number}").touch()
    (tmp_path / "cards.json").write_bytes(msgspec.json.encode(part(card(0), card(1))))
    return tmp_path


@pytest.fixture
def inventory(root: Path) -> bytes:
    """The inventory as the advertiser writes it."""
    framework = NodeFramework(loaded(node_hooks, ON_NODE))
    started(framework, root)
    return encode_inventory(Inventory(kinds=framework.discover(())))


@pytest.fixture
def cluster(inventory: bytes) -> Cluster:
    return Cluster(inventory)


@pytest.fixture
def host(plugin_host: PluginHosts, root: Path) -> RunningHost:
    """The plugin host on that node."""
    running = plugin_host(ON_NODE)
    assert not running.started.faults
    return running


def loaded(hooks: ModuleType, paths: dict[str, str]) -> Registry:
    registry = Registry(hooks)
    assert not registry.load(from_paths(paths)).faults
    return registry


def started(framework: NodeFramework, root: Path) -> None:
    context = NodeContext(node=NODE, role="advertiser", root=PurePosixPath(root), wake=lambda: None)
    assert not framework.started(context)


def hooks_of(module: ModuleType) -> set[str]:
    return {name for name in dir(module) if name.startswith("partage_")}


def granted_to(name: str, allocation: str, inventory: bytes) -> Granted:
    """The input of the plugin host from crishim: raw JSON of both kinds."""
    read = decode_allocation(allocation, ())
    grants = {container_name: grants for container_name, grants in read.containers.items() if container_name == name}
    return Granted(gen=read.gen, grants=grants.popitem()[1], parts=decode_inventory(inventory, ()).kinds)


def test_a_pod_that_asks_for_both_fits_where_both_are(cluster: Cluster) -> None:
    request = cluster.framework.requests(POD)
    assert request.kinds == {GPU.name, FPGA.name}
    no_card, no_board = "node(s) had no cards", "not enough free FPGA boards"
    assert cluster.reasons(request) == [no_card, "", no_card]
    assert cluster.reasons(cluster.framework.requests(pod({"fpga.example.com/boards": "1"}))) == [no_board, "", ""]


def test_batch_hooks_are_called_once_for_all_nodes(cluster: Cluster) -> None:
    request, slots = cluster.framework.requests(POD), np.arange(3, dtype=np.int32)
    cluster.framework.fits(request, slots)
    cluster.framework.scores(request, slots[1:2])
    once = {(hook, plugin): 1 for hook in ("partage_fits", "partage_scores") for plugin in ("gpu", "fpga")}
    assert {call: times for call, times in cluster.seen.calls.items() if call in once} == once


def test_what_is_granted_of_both_kinds_reaches_the_container(
    cluster: Cluster, host: RunningHost, inventory: bytes, root: Path
) -> None:
    """Allocated, signed, verified and adjusted in the plugin host; both plugins' changes are merged."""
    private = Ed25519PrivateKey.generate()
    request = cluster.framework.requests(POD)
    allocation = cluster.allocated(request)
    verify(allocation, sign(allocation, private), {key_id(private.public_key()): private.public_key()})

    main = host.adjust(container(pod=POD.ref), granted_to("main", allocation, inventory))
    assert main.adjustment.env == {"NVIDIA_VISIBLE_DEVICES": "GPU-6f0c-0", "FPGA_BOARDS": "fpga0,fpga1"}
    assert sorted(device.host_path for device in main.adjustment.devices) == sorted(
        ["/dev/nvidia0", f"{root}/dev/fpga0", f"{root}/dev/fpga1"]
    )
    assert main.owners["env FPGA_BOARDS"] == ("fpga",)
    assert main.owners["devices /dev/nvidia0"] == ("gpu",)
    assert not main.unenforced

    framework = host.adjust(container("side-1", pod=POD.ref), granted_to("side-1", allocation, inventory))
    assert framework.adjustment.env == {"FPGA_BOARDS": "fpga2"}


def test_what_is_taken_and_given_back_is_counted_by_both_owners(cluster: Cluster) -> None:
    request = cluster.framework.requests(POD)
    allocation = decode_allocation(cluster.allocated(request), cluster.registry.kinds)
    cluster.framework.take(Slot(1), allocation)
    assert cluster.reasons(request)[1] == "not enough free FPGA boards"
    cluster.framework.give_back(Slot(1), allocation)
    assert cluster.reasons(request)[1] == ""
    assert cluster.allocated(request) == encode_allocation(allocation)


def test_every_hook_of_the_scheduler_is_called(cluster: Cluster) -> None:
    assert len(cluster.framework.resources()) == 1  # the boards; ours are recognized by their prefix
    request = cluster.framework.requests(POD)
    cluster.framework.shape(request)
    cluster.framework.node_room(Slot(1), Resources(cpu_milli=8000), Resources(cpu_milli=500))
    cluster.framework.scores(request, np.array([1], dtype=np.int32))
    cluster.reasons(request)
    allocation = decode_allocation(cluster.allocated(request), cluster.registry.kinds)
    cluster.framework.take(Slot(1), allocation)
    cluster.framework.give_back(Slot(1), allocation)
    cluster.framework.node_removed(Slot(1))
    assert owners(cluster.registry, (GPU.name, FPGA.name)) == ["gpu", "fpga"]  # declared by partage_kind
    of_others = {"partage_mirror", "partage_words"}  # neither plugin knows other systems' keys
    assert cluster.seen.hooks | {"partage_kind"} | of_others == hooks_of(scheduler_hooks)


def test_every_hook_of_the_node_is_called(
    root: Path, plugin_host: PluginHosts, cluster: Cluster, inventory: bytes
) -> None:
    """By the advertiser in its own process, and by the host in its child; the plugin records its calls."""
    registry = loaded(node_hooks, ON_NODE)
    advertiser = NodeFramework(registry)
    started(advertiser, root)
    advertiser.discover(())
    assert {gauge.name for gauge in advertiser.samples()} == {"gpu_busy_ratio", "fpga_boards"}
    asked = container(pod=POD.ref)
    running = plugin_host(ON_NODE)
    granted = granted_to("main", cluster.allocated(cluster.framework.requests(POD)), inventory)
    running.adjust(asked, granted)
    running.removed(asked.key)
    running.stop()
    assert owners(registry, (GPU.name, FPGA.name)) == ["gpu", "fpga"]
    called = set((root / "called").read_text().splitlines())
    assert called | {"partage_kind"} == hooks_of(node_hooks)


def owners(registry: Registry, kinds: Iterable[Kind]) -> list[str | None]:
    return [registry.owner(kind) for kind in kinds]
