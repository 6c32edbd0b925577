"""The node side: which boards exist, and the changes that a container needs to use one.

Instances run in two daemons: the advertiser calls `partage_discover`, crishim's plugin host `partage_adjust`. A hook
may omit arguments that it does not need.
"""

from collections.abc import Sequence
from pathlib import Path

from partage_fpga_template.kind import FPGA, FpgaPart
from partage_plugins import Refused, hookimpl
from partage_plugins.api import Adjustment, Device, Granted
from partage_plugins.api.node import Gauge, NodeContext


class FpgaNode:
    """Boards are the device files `/dev/fpga*`."""

    @hookimpl
    def partage_kind(self) -> object:
        """The same constant as on the scheduler side."""
        return FPGA

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Store where the node's files are: `/`, except in tests."""
        self._devices = Path(context.root) / "dev"

    @hookimpl
    def partage_discover(self) -> FpgaPart | None:
        """Called every few seconds; equal results cost nothing. None means that this node has no boards at all."""
        boards = tuple(sorted(path.name for path in self._devices.glob("fpga[0-9]*")))
        return FpgaPart(boards) if boards else None

    @hookimpl
    def partage_samples(self) -> Sequence[Gauge]:
        """The gauge is exported as `partage_fpga_boards` in the advertiser's metrics."""
        return [Gauge(name="fpga_boards", value=float(len(list(self._devices.glob("fpga[0-9]*")))))]

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        """Put the granted boards into the container; the same result for the same key, as calls may repeat."""
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
