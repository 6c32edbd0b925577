"""The kind `fpga`: its three types, declared once for both sides."""

from typing import Annotated

from msgspec import Meta, Struct

from partage_plugins.api import Kind, KindType

BoardId = Annotated[str, Meta(pattern=r"\Afpga[0-9]{1,4}\Z")]


class FpgaRequest(Struct, frozen=True):
    """One container's request. Hashable, so that requests can be cache keys."""

    boards: Annotated[int, Meta(ge=1, le=64)]


class FpgaGrant(Struct, frozen=True):
    """One board given to one container. It is signed and written on the pod: keep it small."""

    board: BoardId


class FpgaPart(Struct, frozen=True):
    """The boards of one node, as published in its inventory."""

    boards: Annotated[tuple[BoardId, ...], Meta(max_length=64)]


FPGA = KindType(name=Kind("fpga"), request=FpgaRequest, grant=FpgaGrant, part=FpgaPart)
"""Boards are handed out whole, so nothing needs enforcing; for fractions, `promises=` computes the promises of a
grant."""
