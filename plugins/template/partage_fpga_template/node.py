"""The node side: which boards exist, and what a container needs to use one.

Instances live in two daemons: the advertiser asks what exists, crishim's plugin host what to change in a container. A
hook may leave out arguments that it does not need.
"""

from collections.abc import Sequence
from pathlib import Path

from partage_fpga_template.kind import FPGA, FpgaPart
from partage_plugins import Refused, hookimpl
from partage_plugins.vocabulary import Adjustment, Device, Granted
from partage_plugins.vocabulary.node import Gauge, NodeContext


class FpgaNode:
    """Boards are the device files `/dev/fpga*`."""

    @hookimpl
    def partage_kind(self) -> object:
        """The same constant as on the scheduler's side."""
        return FPGA

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Remember where the node's files are: `/`, but for tests."""
        self._devices = Path(context.root) / "dev"

    @hookimpl
    def partage_discover(self) -> FpgaPart | None:
        """Asked every few seconds; equal answers cost nothing. None says that this node has no boards at all."""
        boards = tuple(sorted(path.name for path in self._devices.glob("fpga[0-9]*")))
        return FpgaPart(boards) if boards else None

    @hookimpl
    def partage_samples(self) -> Sequence[Gauge]:
        """Become `partage_fpga_boards` in the advertiser's metrics."""
        return [Gauge(name="fpga_boards", value=float(len(list(self._devices.glob("fpga[0-9]*")))))]

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        """Put the granted boards into the container; the same answer for the same key, as it may be asked twice."""
        boards = [grant.board for grant in granted.of(FPGA)]
        part = granted.part(FPGA)
        for board in boards:
            if part is None or board not in part.boards:
                raise Refused(f"FPGA board {board} is not on this node; was it taken out?")
        if not boards:
            return None
        devices = tuple(
            Device(container_path=f"/dev/{board}", host_path=f"{self._devices}/{board}") for board in boards
        )
        return Adjustment(env={"FPGA_BOARDS": ",".join(boards)}, devices=devices)
