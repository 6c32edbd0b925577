"""node.conf: its valid settings, and the refusal of all others with their line."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig.patience import patience_s
from simgpu.daemon.wire import Caller
from support.simgpu import built

EXIT_CONFIG = 78
_NODE = "driver = 580.95.05\ncuda = 13000\n"
_CARD = "[card]\nname = NVIDIA H100\nuuid = GPU-1\nmemory = 80 GiB\n"
_WHOLE = _NODE + _CARD


def _root(folder: Path, text: str | bytes) -> Path:
    conf = folder / "etc/simgpu/node.conf"
    conf.parent.mkdir(parents=True, exist_ok=True)
    conf.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def _refused(folder: Path, text: str | bytes) -> str:
    done = subprocess.run(
        [built() / "simgpud", _root(folder, text)], capture_output=True, text=True, timeout=patience_s(), check=False
    )
    assert done.returncode == EXIT_CONFIG, done
    assert done.stderr.startswith("simgpud: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("simgpud: ").rstrip()


@contextmanager
def _served(folder: Path, text: str) -> Generator[Path]:
    daemon = subprocess.Popen([built() / "simgpud", _root(folder, text)], stdout=subprocess.PIPE)
    assert daemon.stdout
    try:
        assert daemon.stdout.readline() == b"ready\n"
        yield folder
    finally:
        daemon.terminate()
        assert daemon.wait(patience_s()) == 0
        daemon.stdout.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_NODE + "memory = 5\n", "node.conf:3: memory: no such key before the first [card]; there are driver and cuda"),
        (_WHOLE + "memory = much\n", "node.conf:7: memory: `much` is no number of bytes; write 141 GiB, or 80 MiB"),
        (_WHOLE + "memory = 99999999 TiB\n", "node.conf:7: memory: `99999999 TiB` is no number of bytes; write "),
        (_WHOLE + "memory = 5 GB\n", "node.conf:7: memory: `5 GB` is no number"),
        (_WHOLE + "sms = -1\n", "node.conf:7: sms: `-1` is no number of 32 bits"),
        (_WHOLE + "sms = 4294967296\n", "node.conf:7: sms: `4294967296` is no number of 32 bits"),
        (_WHOLE + "colour = green\n", "node.conf:7: colour: no such key of a card"),
        (_WHOLE + "cpus = 3-1\n", "node.conf:7: cpus: `3-1` is no list of CPUs; write 0-31,64-95"),
        (_WHOLE + "cpus = 0-1024\n", "node.conf:7: cpus: "),
        (_WHOLE + "link_to = 1 x\n", "node.conf:7: link_to: `1 x` are no 18 cards or fewer; write 1 1 2 -"),
        (_WHOLE + "link_to = 1\n", "node.conf:7: link_to: card 0 is linked to card 1, which is not there"),
        (_WHOLE + "pci = here\n", "node.conf:3: pci: `here` is no address; write 0000:18:00.0"),
        (_WHOLE + "reserved = 81 GiB\n", "node.conf:3: memory: is less than reserved and context together"),
        (_WHOLE + f"name = {'x' * 96}\n", "node.conf:7: name: is longer than 95 bytes"),
        (_WHOLE + "[rack]\n", "node.conf:7: [rack]: no such section; there are [card] and [mig]"),
        (_WHOLE + "hello\n", "node.conf:7: hello: is neither a section nor `key = value`"),
        (_WHOLE + _CARD, "node.conf:7: uuid: `GPU-1` is an earlier card's"),
        (_WHOLE + "[mig]\nuuid = MIG-1\n", "node.conf:7: memory: is missing in this section"),
        (_WHOLE + "[mig]\nmemory = 1 GiB\n", "node.conf:7: uuid: is missing in this section"),
        (_NODE + "[mig]\n", "node.conf:3: [mig]: stands before any [card]"),
        (_NODE + "[card]\nuuid = x\n", "node.conf:3: name: is missing in this section"),
        (_CARD, "node.conf:4: driver: is missing before the first [card]; add driver = 580.95.05"),
        ("driver = 1\n" + _CARD, "node.conf:5: cuda: is missing before the first [card]; add cuda = 13000"),
        ("cuda = x\n", "node.conf:1: cuda: `x` is no version; write 13000"),
        ("driver =\n", "node.conf:1: driver: `` is no version; write 580.95.05"),
        (b"driver = 1\n\0\n", "node.conf:2: line: is no line of text, or too long"),
        ("x" * 600, "node.conf:1: line: is no line of text, or too long"),
        ("\x1b[2J = 5\n", "node.conf:1: ?[2J: no such key before"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert _refused(tmp_path, text).startswith(said)


def test_more_cards_than_fit_are_refused(tmp_path: Path) -> None:
    cards = "".join(_CARD.replace("GPU-1", f"GPU-{n}") for n in range(33))
    assert _refused(tmp_path, _NODE + cards) == "node.conf:131: [card]: is one more than the 32 that a node may have"


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    done = subprocess.run([built() / "simgpud", tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        EXIT_CONFIG,
        "simgpud: etc/simgpu/node.conf: No such file or directory; write it first\n",
    )


def test_comments_blanks_units_and_hexadecimal_are_understood(tmp_path: Path) -> None:
    text = "# node\n\n" + _NODE + "[card] # first\n  name=A # b\nuuid =GPU-1\nmemory= 0x40MiB\n"
    with _served(tmp_path, text) as root, Caller(root) as caller:
        assert (caller.node().cards, caller.node().card[0].name) == (1, b"A")


def test_an_instance_is_as_its_card_but_for_what_it_says(tmp_path: Path) -> None:
    text = _WHOLE + "minor = 3\n[mig]\nuuid = MIG-1\nmemory = 10 GiB\n[mig]\nuuid = MIG-2\nmemory = 10 GiB\n"
    with _served(tmp_path, text) as root, Caller(root) as caller:
        cards = caller.node().card[:3]
        assert [card.uuid for card in cards] == [b"GPU-1", b"MIG-1", b"MIG-2"]
        assert {card.name for card in cards} == {b"NVIDIA H100"}


@pytest.mark.slow
def test_any_text_is_read_or_refused(tmp_path: Path) -> None:
    """Lines in any order, cut anywhere, with any bytes between them."""
    chance = random.Random(0)  # noqa: S311 - it makes inputs, no secrets
    lines = [
        *_WHOLE.splitlines(),
        "[mig]",
        "uuid = MIG-1",
        "cpus = 0-31,64-95",
        "link_to = 0 -",
        "numa = -1",
        "= =",
        "[",
    ]
    for _ in range(150):
        text = "\n".join(chance.choices(lines, k=chance.randrange(12))).encode()
        text += chance.randbytes(chance.choice([0, 0, 3, 40]))
        _refused(tmp_path, text + b"\nno end")
