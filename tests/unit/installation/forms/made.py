"""All forms of data that one version of partage leaves on a node for another, with fixed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from partage_base.condition import Condition, decode_condition, encode_condition, fault
from partage_crishim.rules.holdings import Holding, Reservation
from partage_isolation.ledger.account import Account
from partage_isolation.ledger.budget import CardSpec, Process, State
from partage_isolation.ledger.pieces import Piece
from partage_isolation.names import own_budget
from partage_isolation.store.rows import pack_piece, pack_row, read_row, rows_of
from partage_isolation.store.rows_file import Shape, pack_header, read_header
from partage_isolation.store.specs import BudgetSpec, Spec
from partage_isolation.timeslices.line import LineState, pack, unpack
from partage_isolation.wire import packets
from partage_isolation.wire.messages import Prepare, Prepared, answer_line, question_line, read_answer, read_question
from partage_plugins.api import (
    GPU,
    Allocation,
    BudgetName,
    BudgetUse,
    CardId,
    ContainerKey,
    ContainerName,
    GpuGrant,
    GpuPart,
    Inventory,
    Namespace,
    NodeName,
    PodName,
    PodUid,
    Ready,
    grantee_of,
)
from partage_plugins.api.allocation import ContainerAllocation
from partage_plugins.api.containers import Mount
from partage_plugins.api.pods import PodRef
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.codecs.allocation import decode_allocation, decode_container, encode_allocation, encode_container
from support.gpu_fleet import card

KEY = ContainerKey("0123456789abcdef" * 2)
GRANT = GpuGrant(card=CardId("GPU-6f0c"), share_milli=500, limit_milli=1000, memory_bytes=8 << 30)
MAIN, SIDE = ContainerName("main"), ContainerName("side")
POD = PodRef(namespace=Namespace("team-a"), name=PodName("train-0"), uid=PodUid("5f0c"))


@dataclass(frozen=True)
class Form:
    written: bytes
    means: object
    read: Callable[[bytes], object]


def _json(value: msgspec.Struct) -> Form:
    return Form(msgspec.json.encode(value), value, lambda raw: msgspec.json.decode(raw, type=type(value)))


def _row(written: bytes, number: int) -> Form:
    """A row in the slot of its number; the other slot was never written."""
    empty = bytes(len(written))

    def read(raw: bytes) -> object:
        return read_row((empty, raw) if number & 1 else (raw, empty))

    return Form(written, read(written), read)


def _packet(written: bytes, *looks: str) -> Form:
    def read(raw: bytes) -> object:
        packet = packets.read(raw)
        assert packet is not None
        return packet[:6], tuple(getattr(packet, look) for look in looks)

    return Form(written, read(written), read)


def _word(state: LineState, epoch: int, deadline_ns: int) -> Form:
    """The word of a line in a container's page."""
    written = pack(state, epoch, deadline_ns).to_bytes(8, "little")
    return Form(written, (state, epoch, deadline_ns), lambda raw: unpack(int.from_bytes(raw, "little")))


def _allocation() -> Allocation:
    budget = BudgetName("pod")
    return Allocation(
        gen=2,
        pod=PodUid("5f0c"),
        node=NodeName("n1"),
        containers={MAIN: {GPU.name: (GRANT,)}, grantee_of(budget): {GPU.name: (GRANT,)}},
        uses=(BudgetUse(container=SIDE, kind=GPU.name, budget=budget),),
    )


def forms() -> Mapping[str, Form]:
    cards = (CardSpec(id=GRANT.card, memory=8 << 30, share=500, limit=1000, lowered=4 << 30, most=8 << 30),)
    process = Process(KEY, 4711, 99, bytes(range(16)), State.LIVE, {0: Account(1, 2, 3, 4, used=5, is_made=True)})
    piece = Piece(0, (4711, 99), 7, is_made=True, size=64, given=32, opened=1, left=0, names={17})
    (piece_row,) = rows_of(own_budget(KEY), piece)
    allocation, inventory = (
        _allocation(),
        Inventory(
            ready=Ready(crishim=True, broker=True),
            kinds={GPU.name: GpuPart(driver="580.65.06", cuda="13.0", cards=(card("GPU-6f0c"),))},
        ),
    )
    on_container = ContainerAllocation(key=KEY, gen=2, grants={GPU.name: (GRANT,)})
    condition = Condition(faults=(fault("keys", "no key"),))
    held = Holding(key=KEY, pod="5f0c", container="main", gen=2, cards=(GRANT,))
    prepare = Prepare(key=KEY, pod=POD, container=MAIN, gen=2, grants=(GRANT,))
    prepared = Prepared(
        mounts=(Mount(container_path="/run/partage", host_path="/run/x"),), enforces=("memory", "share")
    )
    ask = packets.question
    return {
        "allocation": Form(
            encode_allocation(allocation).encode(), allocation, lambda raw: decode_allocation(raw, [GPU])
        ),
        "grants of a container": Form(
            encode_container(on_container).encode(), on_container, lambda raw: decode_container(raw, [GPU])
        ),
        "inventory": Form(encode_inventory(inventory), inventory, lambda raw: decode_inventory(raw, [GPU])),
        "condition": Form(encode_condition(condition), condition, decode_condition),
        "reservation": _json(Reservation(held=held, token="00ff", until_s=12.5)),  # noqa: S106  no secret
        "limits": _json(
            Spec(key=KEY, pod=POD, container=MAIN, gen=2, cards=cards, library="/usr/local/lib/partage/0.1.0-1f0c")
        ),
        "limits of a budget": _json(BudgetSpec(gen=2, cards=cards)),
        "rows: header": Form(
            pack_header(Shape(128, 16), "boot"), Shape(128, 16), lambda raw: read_header(raw, "boot", 1 << 20)
        ),
        "rows: process": _row(pack_row(1, process, None), 1),
        "rows: card": _row(pack_row(2, process, 0), 2),
        "rows: piece": _row(pack_piece(3, piece_row), 3),
        "packet: hello": _packet(ask(packets.What.HELLO, flags=1, body=bytes(range(16))), "token"),
        "packet: lend": _packet(ask(packets.What.LEND, card=1, number=9, body=(5).to_bytes(8, "little")), "amounts"),
        "packet: export": _packet(ask(packets.What.EXPORT, card=1, body=(17).to_bytes(8, "little")), "shared"),
        "packet: want": _packet(ask(packets.What.WANT, card=1, body=(3).to_bytes(8, "little")), "timeslice"),
        "packet: recall": _packet(packets.hint(packets.What.RECALL, 1, 2)),
        "packet: line": _packet(packets.line_hint(1, 77)),
        "page: line": _word(LineState.TIMESLICE, 77, 1 << 40),
        "control: prepare": Form(question_line(prepare), prepare, read_question),
        "control: prepared": Form(answer_line(prepared), prepared, read_answer),
    }
