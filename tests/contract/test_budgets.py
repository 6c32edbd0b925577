"""Schedulers and nodes agree about budgets: of cards, of boards and of both, beside plain containers.

Real owners allocate, the text is passed on as written on pods, and crishim's rules count container by container.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.cards import card, part
from partage_crishim.rules.errors import NoRoom
from partage_crishim.rules.holdings import Holding, require_room
from partage_dialects.native import NativeDialect
from partage_fpga_template.kind import FPGA, FpgaRequest
from partage_fpga_template.scheduler import FpgaScheduler
from partage_gpu.allocator import GpuAllocator
from partage_plugins import hookimpl
from partage_plugins.api import (
    GPU,
    Allocation,
    Budgeted,
    BudgetName,
    ContainerName,
    GpuRequest,
    Kind,
    NodeName,
    Pod,
    PodUid,
    Slot,
)
from partage_plugins.codecs import decode_allocation, decode_inventory, decode_raw_grants, encode_allocation
from partage_plugins.codecs.allocation import container_key
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.testing.examples import inventory, like, pod
from support.extent import examples
from support.sides import Record, load_scheduler, slots

_KINDS: Final = (GPU, FPGA)
NODE: Final = inventory(gpu=part(card(0), card(1)), fpga={"boards": ["fpga0", "fpga1", "fpga2"]})
HERE: Final = Slot(0)
Use = tuple[str, Kind]
Answer = dict[ContainerName, dict[Kind, object]]


class Spoken:
    """A dialect whose requests are all in one annotation: by container and kind an amount, and optionally a budget."""

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        said: dict[str, dict[str, tuple[int, str]]] = msgspec.json.decode(pod.annotations.get("note", "{}"))
        return {
            ContainerName(name): {Kind(kind): _asked(Kind(kind), *each) for kind, each in asks.items()}
            for name, asks in said.items()
        } or None


def _asked(kind: Kind, amount: int, budget: str) -> object:
    memory = amount << 26
    ask: Any = GpuRequest(share_milli=amount, memory_bytes=memory) if kind == GPU.name else FpgaRequest(amount)
    return Budgeted(budget=BudgetName(budget), ask=ask) if budget else ask


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Up to four containers; each has nothing, its own amount, or a part in one of two budgets of each kind."""
    shares, boards = st.sampled_from([100, 300, 400, 600]), st.integers(1, 2)
    amounts: Mapping[Use, int] = {
        (budget, kind.name): draw(shares if kind is GPU else boards) for budget in ("b0", "b1") for kind in _KINDS
    }
    said: dict[str, dict[str, tuple[int, str]]] = {}
    names = ["main", "side-1", "side-2", "side-3"][: draw(st.integers(1, 4))]
    for name in names:
        for kind, own in ((GPU.name, shares), (FPGA.name, boards)):
            how = draw(st.sampled_from(["nothing", "own", "b0", "b1"]))
            if how == "own":
                said.setdefault(name, {})[kind] = draw(own), ""
            elif how != "nothing":
                said.setdefault(name, {})[kind] = amounts[how, kind], how
    return pod({}, *({} for _ in names[1:]), annotations={"note": msgspec.json.encode(said).decode()})


class Node:
    """One node in the scheduler's and in crishim's accounts."""

    def __init__(self) -> None:
        self.registry, report = load_scheduler(
            gpu=GpuAllocator, fpga=FpgaScheduler, spoken=Spoken, native_dialect=NativeDialect
        )
        assert not report.faults
        self.framework = SchedulerFramework(self.registry, Record())
        self.inventory = decode_inventory(NODE, self.registry.kinds)
        self.framework.node_added(HERE, NodeName("n"), self.inventory)
        self.holdings: list[Holding] = []

    def place(self, wanted: Pod) -> Allocation | None:
        """Places the pod if there is room; returns the allocation decoded from its text."""
        request = self.framework.requests(wanted)
        if not request.containers or not self.framework.fits(request, slots(HERE)).fits[0]:
            return None
        grants = self.framework.allocate(request, HERE)
        written = Allocation(gen=1, pod=wanted.ref.uid, node=NodeName("n"), containers=grants, uses=request.uses)
        text = encode_allocation(written)
        read = decode_allocation(text, _KINDS)
        assert read == written
        assert set(decode_raw_grants(text)) == request.asking
        self.framework.take(HERE, read)
        return read

    def start(self, allocation: Allocation, name: ContainerName) -> None:
        """Counts the container as crishim does; raises `NoRoom` if crishim would refuse it."""
        held = holding(allocation, name)
        require_room(held, self.holdings, self.inventory.part(GPU))
        self.holdings.append(held)


def holding(allocation: Allocation, name: ContainerName, attempt: int = 0) -> Holding:
    return Holding(
        key=container_key(PodUid(allocation.pod), name, attempt),
        pod=allocation.pod,
        container=name,
        gen=allocation.gen,
        cards=allocation.given(name, GPU),
        budget=allocation.budgets_of(name).get(GPU.name),
    )


def placed(node: Node, wanted: list[Pod]) -> list[Allocation]:
    found = (node.place(like(each, number)) for number, each in enumerate(wanted))
    return [each for each in found if each is not None]


def users(allocation: Allocation) -> list[ContainerName]:
    """The containers with a grant on a card."""
    return [name for name in decode_raw_grants(encode_allocation(allocation)) if allocation.given(name, GPU)]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(pods(), min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_what_the_scheduler_places_is_never_too_much_on_the_node(wanted: list[Pod], random: Any) -> None:
    """This holds for any order of starts and restarts, and no board is granted twice."""
    node = Node()
    allocations = placed(node, wanted)
    starts = [(allocation, name) for allocation in allocations for name in users(allocation)]
    random.shuffle(starts)
    for allocation, name in starts:
        node.start(allocation, name)
    for allocation, name in starts:
        require_room(holding(allocation, name, attempt=1), node.holdings, node.inventory.part(GPU))
    boards = Counter(
        grant.board for allocation in allocations for grants in allocation.of(FPGA).values() for grant in grants
    )
    assert set(boards.values()) <= {1}


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(pods(), min_size=1, max_size=10))
def test_a_budget_frees_all_that_it_held_and_no_more(wanted: list[Pod]) -> None:
    """After everything is released the same pods get the same grants again."""
    node = Node()
    first = placed(node, wanted)
    for allocation in first:
        node.framework.give_back(HERE, allocation)
    assert placed(node, wanted) == first


def budget_of(milli: int, *names: str) -> Pod:
    said = {name: {"gpu": (milli, "pod")} for name in names}
    return pod({}, {}, {}, annotations={"note": msgspec.json.encode(said).decode()})


def test_a_budget_of_600_that_two_containers_use_fits_beside_400_on_one_card() -> None:
    node = Node()
    other_card = node.place(like(budget_of(1000, "main"), 0))
    together = node.place(like(budget_of(600, "main", "side-1"), 1))
    beside = node.place(like(pod({"partage.dev/gpu-milli": "400"}), 2))
    assert other_card is not None
    assert together is not None
    assert beside is not None
    cards = [{grant.card for grants in each.of(GPU).values() for grant in grants} for each in (together, beside)]
    assert cards[0] == cards[1]
    assert node.place(like(pod({"partage.dev/gpu-milli": "1"}), 3)) is None
    for name in users(together):
        node.start(together, name)
    node.start(beside, ContainerName("main"))
    with pytest.raises(NoRoom):
        node.start(msgspec.structs.replace(beside, pod=PodUid("another")), ContainerName("main"))
