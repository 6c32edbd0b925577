"""The scheduler side: which container gets which board.

All state comes from `partage_node_added` and `partage_take`; nothing is persisted, since the host replays both after a
start. The class has no constructor arguments, so that the host can instantiate it again after a failure.
"""

from collections.abc import Mapping, Sequence

from partage_fpga_template.kind import FPGA, FpgaGrant, FpgaRequest
from partage_plugins import Refused, hookimpl
from partage_plugins.api import Allocation, ContainerName, Inventory, Kind, Pod, PodRequest, Slot
from partage_plugins.codecs import parse_whole_quantity
from partage_plugins.per_node import PerNode

RESOURCE = "fpga.example.com/boards"


class FpgaScheduler(PerNode):
    """Hands out whole boards, the lowest number first."""

    def __init__(self) -> None:
        self._free: dict[Slot, set[str]] = {}

    @hookimpl
    def partage_kind(self) -> object:
        """This plugin owns the kind."""
        return FPGA

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        """Our dialect: one resource in a container's limits. An invalid number raises, which refuses the pod."""
        asked = {
            container.name: container.limits[RESOURCE] for container in pod.containers if RESOURCE in container.limits
        }
        boards = {name: parse_whole_quantity(text, path=RESOURCE, largest=64) for name, text in asked.items()}
        return {name: {FPGA.name: FpgaRequest(count)} for name, count in boards.items() if count} or None

    @hookimpl
    def partage_resources(self) -> Sequence[str]:
        """Nodes do not list boards in their capacity: this plugin counts them."""
        return [RESOURCE]

    @hookimpl
    def partage_shape(self, request: PodRequest) -> int:
        """Two pods that need equally many boards fit on the same nodes."""
        return _boards(request)

    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        """All boards of a new node are free; the host replays its allocations next."""
        part = inventory.part(FPGA)
        self._free[slot] = set(part.boards) if part else set()

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None:
        """The slot may be reused for another node."""
        del self._free[slot]

    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        """Called for each node by `PerNode`; reasons are shown to users, counted over nodes."""
        return None if _boards(request) <= len(self._free[slot]) else "not enough free FPGA boards"

    def score(self, request: PodRequest, slot: Slot) -> float:
        """Prefer nodes that this pod leaves with few free boards, to keep others whole."""
        return 1 / (1 + len(self._free[slot]) - _boards(request))

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[FpgaGrant]]:
        """Choose boards without changing state, since the host may not complete the allocation."""
        free = sorted(self._free[slot], key=_number, reverse=True)
        if len(free) < _boards(request):
            raise Refused("not enough free FPGA boards")
        return {name: [FpgaGrant(free.pop()) for _ in range(ask.boards)] for name, ask in request.of(FPGA).items()}

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        self._free[slot] -= _granted(allocation)

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None:
        """Mark these boards as free again."""
        self._free[slot] |= _granted(allocation)


def _boards(request: PodRequest) -> int:
    return sum(ask.boards for ask in request.of(FPGA).values())


def _granted(allocation: Allocation) -> set[str]:
    return {grant.board for grants in allocation.of(FPGA).values() for grant in grants}


def _number(board: str) -> int:
    return int(board.removeprefix("fpga"))
