"""Devices: their number, order and properties."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simgpu.cuda.programs import Programs
from support.simgpu import NODE, card, card_uuid, simulated_node

pytestmark = pytest.mark.slow

FIRST, SECOND = card_uuid(NODE, 0), card_uuid(NODE, 1)
WHICH = """
number = ask("cuInit", 0)
count = made("cuDeviceGetCount", kind=ctypes.c_int) if not number else 0
def uuid(n):
    text = (ctypes.c_ubyte * 16)(); call("cuDeviceGetUuid_v2", text, n); return bytes(text).hex()
tell([number, [uuid(n) for n in range(count)]])
"""


def digits(uuid: str) -> str:
    return uuid.split("-", 1)[1].replace("-", "")


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("0,1", [FIRST, SECOND]),
        ("1,0", [SECOND, FIRST]),
        ("1", [SECOND]),
        (SECOND, [SECOND]),
        (SECOND[:12], [SECOND]),
        ("0,9,1", [FIRST]),
        (" 1 , 0", [SECOND, FIRST]),
        ("GPU-", []),
        ("-1", []),
        ("", []),
        ("0x1", []),
        ("0,0", []),
        ("none", []),
    ],
)
def test_a_program_sees_the_cards_that_its_environment_names(programs: Programs, words: str, seen: list[str]) -> None:
    number, uuids = programs.run(WHICH, CUDA_VISIBLE_DEVICES=words)
    assert uuids == [digits(each) for each in seen]
    assert number == (0 if seen else 100)


def test_a_card_without_its_device_node_is_not_there(programs: Programs) -> None:
    (programs.node.root / "dev/nvidia0").unlink()
    assert programs.run(WHICH) == [0, [digits(SECOND)]]


def test_a_program_sees_one_mig_instance_and_no_whole_card(tmp_path: Path) -> None:
    cards = (card("h100", mig=("1g.10gb", "1g.10gb")), card("h100"))
    with simulated_node(tmp_path, cards=cards) as node:
        first, second = re.findall(r"MIG-[0-9a-f-]+", node.control("status"))
        programs = Programs(node)
        assert programs.run(WHICH) == [0, [digits(first)]]
        assert programs.run(WHICH, CUDA_VISIBLE_DEVICES=f"{second},{first}") == [0, [digits(second)]]


def test_devices_are_what_their_profile_says(programs: Programs) -> None:
    told = programs.run("""
        call("cuInit", 0); name = ctypes.create_string_buffer(100); call("cuDeviceGetName", name, 100, 0)
        def attribute(number): return made("cuDeviceGetAttribute", number, 0, kind=ctypes.c_int)
        pci = ctypes.create_string_buffer(20); call("cuDeviceGetPCIBusId", pci, 20, 1)
        back = made("cuDeviceGetByPCIBusId", pci.value, kind=ctypes.c_int)
        tell([name.value.decode(), [attribute(n) for n in (1, 10, 16, 39, 75, 76, 102, 115)], back])
    """)
    assert told == ["NVIDIA H100 80GB HBM3", [1024, 32, 132, 2048, 9, 0, 1, 1], 1]


def test_every_attribute_has_an_answer_and_no_others(programs: Programs) -> None:
    answers = programs.run("""
        call("cuInit", 0); value = ctypes.c_int()
        tell([n for n in range(-1, 400) if not ask("cuDeviceGetAttribute", ctypes.byref(value), n, 0)])
    """)
    assert answers == list(range(1, 162))


def test_without_a_driver_there_is_no_device(programs: Programs) -> None:
    programs.node.stop()
    assert programs.run(WHICH) == [100, []]
