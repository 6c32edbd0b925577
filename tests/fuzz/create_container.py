"""Whatever bytes a CreateContainer is: a verdict, and on a node with cards nothing goes on that cannot be read.

The first byte says whether the node has cards. A refusal is one printable line; a rewrite is a request that can be
read, and again gives the same.
"""

from __future__ import annotations

import asyncio
import atexit
import tempfile
from pathlib import Path
from typing import Final

from partage_base.cri import MessageWrong, read_create
from partage_crishim.verdicts import CREATE_CONTAINER, HeldCall, Pass, Refuse, Rewrite
from unit.crishim.rules import wire
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
    wire.pair("a", "first") + wire.pair("a", "last"),  # one entry: the last of each counts
    wire.field(2, "no key"),
    wire.field(1, "no value"),
    wire.pair("a", "b") + wire.message((1, 5), (2, 6), (3, "more")),  # other wire types
    wire.varint(1 << 3 | 2) + b"\x81\x80\x00a",  # a length in more bytes than it needs
)
_BYTES: Final = (
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


_WITHOUT, _WITH = _crishim("without", cards=False), _crishim("with", cards=True)
_LOOP: Final = asyncio.new_event_loop()


def target(data: bytes) -> str:
    crishim, message = (_WITH if data[:1] > b"\x7f" or data[:1] == b"\1" else _WITHOUT), data[1:]
    crishim.stage.told.clear()
    crishim.stage.now_s += 1000
    verdict = _LOOP.run_until_complete(crishim.judge(HeldCall(CREATE_CONTAINER, message)))
    if defects := [told.error for told in crishim.stage.told if told.is_defect]:
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
    names = [name for name, _ in after.env]
    if names.count("NVIDIA_VISIBLE_DEVICES") > 1:
        raise AssertionError("a rewritten variable stands twice")
    return "rewritten"
