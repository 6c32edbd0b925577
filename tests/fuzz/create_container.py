"""While cards are guarded an unread CreateContainer is refused, and a rewrite keeps every byte that it need not change.

The first byte says whether the node has cards. A refusal is one printable line. A rewrite equals the request byte for
byte, except where it names cards and in our annotations; inputs are encoded in more ways than any writer uses.
"""

from __future__ import annotations

import asyncio
import atexit
import random
import tempfile
from pathlib import Path
from typing import Final

from fuzz._requests import ANNOTATIONS, ENV, MOUNTS, keys_of, said
from fuzz.engine.wire_mutation import NoMessage, change_message
from partage_base.cri import MessageWrong, read_create
from partage_crishim.decisions import CREATE_CONTAINER, InterceptedCall, Pass, Refuse, Rewrite
from partage_plugins.api.nvidia import MIG_VARIABLES, VISIBLE, mounted_name
from partage_plugins.rules.paths import clean_path
from support import wire
from unit.cri import gogo
from unit.crishim.rules.allocations import WHOLE, allocation, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

_FOLDER: Final = tempfile.TemporaryDirectory()
atexit.register(_FOLDER.cleanup)
_REQUESTS: Final = (
    Create(),
    Create(annotations=signed(allocation())),
    Create(annotations=signed(allocation(WHOLE)), privileged=True, mounts=[("/run", "/x")]),
    Create(env=[("NVIDIA_VISIBLE_DEVICES", "all"), ("NVIDIA_VISIBLE_DEVICES", "0")], cdi=["nvidia.com/gpu=all"]),
    Create(annotations={"nvidia.cdi.k8s.io/x": "y"}, own_annotations={"cdi.k8s.io/a": "b"}),
    Create(mounts=[("/var/run/nvidia-container-devices/all", "/dev/null")], unknown=wire.field(99, "x")),
    Create(annotations=signed(allocation()), mounts=[("/var/run//./nvidia-container-devicesall", "/dev/null")]),
    Create(annotations=signed(allocation()), pids=0),
    Create(container="side", annotations=signed(allocation()), pids=3, target="c", privileged=True),
    Create(annotations=signed(allocation()), pids=(1 << 32) + 3, target="c", sandbox_pids=(1 << 32) + 2),
    Create(annotations={"x": b"\xff"}, labels={"y": b"\xff"}, own_annotations={"x": b"/tmp/\xff"}),
    Create(annotations={**signed(allocation()), "alloc.partage.dev/signature": b"\xff"}),
)
_PAIRS: Final = (
    wire.pair("a", "first") + wire.pair("a", "last"),  # one entry: its last key and value count
    wire.field(2, "no key"),
    wire.field(1, "no value"),
    wire.pair("a", "b") + wire.message((1, 5), (2, 6), (3, "more")),  # other wire types
    wire.varint(1 << 3 | 2) + b"\x81\x80\x00a",  # a length in more bytes than needed
)
_SPLIT: Final = (
    wire.field(
        2, wire.field(15, wire.field(2, wire.field(3, wire.field(2, 2))))
    )  # a message in two parts: the host's PID namespace
    + wire.field(3, wire.field(1, wire.field(3, "other")))
    + wire.field(2, wire.field(15, wire.field(2, wire.field(2, 1) + wire.field(2, 0)))),
    wire.field(3, wire.field(8, wire.field(2, wire.field(1, wire.field(2, (1 << 32) + 2))))),
    b"\xa3\x06\x08\x01\xa4\x06" + wire.field(2, b"\xa3\x06\x12\x01\xff\xa4\x06"),  # groups of another schema
    wire.field(2, wire.varint(6 << 3) + b"\x01"),  # an environment variable encoded as a number
    wire.varint(2 << 3 | 2) + b"\x80\x80\x80\x80\x00",  # an empty part, with an overlong length
)
_BYTES: Final = (
    gogo.CREATE,
    *(Create(env=[(VISIBLE, "all")]).bytes() + part for part in _SPLIT),
    *(create.bytes() for create in _REQUESTS),
    *(Create().bytes() + wire.field(3, wire.field(7, pair)) + wire.field(2, wire.field(10, pair)) for pair in _PAIRS),
)
SEEDS: Final = (b"", *(bytes([flags]) + message for message in _BYTES for flags in (0, 1)))
DICTIONARY: Final = (
    *(word.encode() for name_and_value in signed(allocation()).items() for word in name_and_value),
    b"NVIDIA_VISIBLE_DEVICES",
    b"/run/partage",
    b"nvidia.cdi.k8s.io/",
    b"\x12\x00",
    b"\x1a\x00",
)


def _crishim(name: str, *, cards: bool) -> Crishim:
    stage = Stage(root=Path(_FOLDER.name) / name)
    if not cards:
        stage.no_inventory()
    return stage.crishim()


def change(data: bytes, rng: random.Random) -> bytes:
    """Keeps the input a message for most decoders."""
    return data[:1] + change_message(data[1:], rng)


_WITHOUT, _WITH = _crishim("without", cards=False), _crishim("with", cards=True)
_LOOP: Final = asyncio.new_event_loop()


def target(data: bytes) -> str:
    crishim, message = (_WITH if data[:1] > b"\x7f" or data[:1] == b"\1" else _WITHOUT), data[1:]
    crishim.stage.told.clear()
    crishim.stage.now_s += 1000
    verdict = _LOOP.run_until_complete(crishim.admission(InterceptedCall(CREATE_CONTAINER, message)))
    if defects := [told.error for told in crishim.stage.told if told.what == "defect" and told.error]:
        raise defects[0]
    match verdict:
        case Pass():
            if crishim is _WITH:
                read_create(message)
            return "passed"
        case Refuse():
            if not verdict.sentence.isprintable() or len(verdict.sentence) > 1000:
                raise AssertionError(f"no printable line: {verdict.sentence!r}")
            return f"refused: {verdict.sentence[:60]}"
        case Rewrite():
            return _rewritten(message, verdict.message)


def _rewritten(message: bytes, written: bytes) -> str:
    try:
        before, after = read_create(message), read_create(written)
    except MessageWrong as wrong:
        raise AssertionError("something that is no request was rewritten") from wrong
    if (before.uid, before.container, before.annotations) != (after.uid, after.container, after.annotations):
        raise AssertionError("a rewrite changed who a container is")
    _require_kept(message, written)
    return "rewritten"


_CARDS: Final = frozenset(name.encode() for name in (VISIBLE, *MIG_VARIABLES))
_MAY_CHANGE: Final = {
    ENV: lambda key: key in _CARDS,
    MOUNTS: lambda path: bool(mounted_name(clean_path(path.decode(errors="surrogateescape")))),
    ANNOTATIONS: lambda key: key.startswith(b"alloc.partage.dev/"),
}


def _require_kept(message: bytes, written: bytes) -> None:
    """Compares with a reader independent of our decoder."""
    try:
        before, after = said(message), said(written)
    except NoMessage:  # such as deeply nested groups
        return
    if before.but(_MAY_CHANGE) != after.but(_MAY_CHANGE):
        raise AssertionError(
            f"a rewrite changed what it need not: {_first(before.but(_MAY_CHANGE), after.but(_MAY_CHANGE))}"
        )
    names = [name for name in keys_of(after, ENV) if name in _CARDS]
    if list(keys_of(after, ENV)).count(VISIBLE.encode()) > 1:
        raise AssertionError(f"a rewritten variable stands twice: {names}")


def _first(before: tuple[object, ...], after: tuple[object, ...]) -> str:
    return next(f"{one!r:.300} to {other!r:.300}" for one, other in zip(before, after, strict=True) if one != other)
