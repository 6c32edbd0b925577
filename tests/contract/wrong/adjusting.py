"""Node plugins that adjust containers wrongly, or crash while adjusting."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace

from msgspec import Struct
from msgspec.structs import replace as with_fields

from partage_fpga_template.kind import FPGA, FpgaGrant, FpgaPart
from partage_fpga_template.node import FpgaNode
from partage_plugins import hookimpl
from partage_plugins.api import Adjustment, Container, Granted, Promise
from partage_plugins.api.kinds import KindType

_MIB = 1 << 20


class OtherGrant(Struct, frozen=True):
    """Another type than that of the scheduler side's grants."""

    board: str
    slot: int = 0


def shared(grant: FpgaGrant, part: FpgaPart | None) -> frozenset[Promise]:
    """Promises as if half a board were granted."""
    return frozenset[Promise](("memory", "share"))


def _unlucky(grant: FpgaGrant, part: FpgaPart | None) -> frozenset[Promise]:
    raise LookupError("no such board")


class EnforcesNothing(FpgaNode):
    @hookimpl
    def partage_kind(self) -> object:
        return replace(FPGA, promises=shared)


class PromisesByRaising(FpgaNode):
    @hookimpl
    def partage_kind(self) -> object:
        return replace(FPGA, promises=_unlucky)


class OwnsAnotherKind(FpgaNode):
    @hookimpl
    def partage_kind(self) -> object:
        return KindType(name=FPGA.name, request=FPGA.request, grant=OtherGrant, part=FPGA.part)


class AdjustsAnew(FpgaNode):
    _numbers = itertools.count()

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        right = super().partage_adjust(granted)
        return right and with_fields(right, env={"CALL": str(next(self._numbers))})


class AdjustsByProcess(FpgaNode):
    """Consistent within one process, different in the next."""

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        right = super().partage_adjust(granted)
        return right and with_fields(right, env={"INSTANCE": str(id(self))})


class AdjustsEverything(FpgaNode):
    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        return super().partage_adjust(granted) or Adjustment(env={"FPGA_BOARDS": ""})


class AcceptsUnknownBoards(FpgaNode):
    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        boards = [grant.board for grant in granted.of(FPGA)]
        missing = granted.part(FPGA) is None
        return super().partage_adjust(granted) if missing or not boards else Adjustment(env={"B": ",".join(boards)})


class AcceptsWithoutAPart(FpgaNode):
    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        return super().partage_adjust(granted) if granted.part(FPGA) else None


class ChangesTheContainer(FpgaNode):
    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:  # type: ignore[override]
        container.annotations["seen"] = "yes"  # type: ignore[index]
        return super().partage_adjust(granted)


class EatsMemory(FpgaNode):
    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        return Adjustment(env={"EATEN": str(len([bytes(16 * _MIB) for _ in range(1 << 16)]))})


class AnswersTooMuch(FpgaNode):
    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        right = super().partage_adjust(granted)
        return right and with_fields(right, env={f"PART_{number}": "x" * (_MIB // 8) for number in range(8 * 33)})


class DiesInTheHostOnly(FpgaNode):
    """Works in the author's process, and aborts in the plugin host's child."""

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        if any("host.child" in argument for argument in sys.orig_argv):
            os.abort()
        return super().partage_adjust(granted)
