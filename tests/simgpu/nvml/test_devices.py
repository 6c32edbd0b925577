"""Cards: their number, their lookup, and their properties."""

from __future__ import annotations

import subprocess

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    Program,
    program,
)
from support.simgpu import NODE, card_uuid

pytestmark = pytest.mark.slow


def test_cards_are_counted_and_named(nvml: Program) -> None:
    assert nvml.ask("[nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(i)) for i in range(nvmlDeviceGetCount())]") == [
        card_uuid(NODE, 0),
        card_uuid(NODE, 1),
        card_uuid(NODE, 2),
    ]
    assert nvml.ask("nvmlDeviceGetName(card)") == "NVIDIA H100 80GB HBM3"
    assert nvml.error("nvmlDeviceGetHandleByIndex(3)") == INVALID_ARGUMENT


WAYS = (
    "nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(one))",
    "nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(one).upper())",
    "nvmlDeviceGetHandleByPciBusId(nvmlDeviceGetPciInfo(one).busId)",
    "nvmlDeviceGetHandleByPciBusId(nvmlDeviceGetPciInfo(one).busId.lower())",
    "nvmlDeviceGetHandleByPciBusId(nvmlDeviceGetPciInfo(one).busIdLegacy)",
    "nvmlDeviceGetHandleByPciBusId('%x:%x' % (nvmlDeviceGetPciInfo(one).bus, nvmlDeviceGetPciInfo(one).device))",
)
WRONG_NAMES = ("", "GPU-", "17:00", "0000:18:00.0.0", "1:2:3:4", "0000:18:zz.0", ":::", "x" * 200)


def test_a_card_is_found_by_every_name_that_it_has_and_by_no_other(nvml: Program) -> None:
    nvml.ask("(one := nvmlDeviceGetHandleByIndex(1)) and None")
    for way in WAYS:
        assert nvml.ask(f"nvmlDeviceGetIndex({way})") == 1, way
    for name in WRONG_NAMES:
        assert nvml.error(f"nvmlDeviceGetHandleByPciBusId({name!r})") == NOT_FOUND, name
        assert nvml.error(f"nvmlDeviceGetHandleByUUID({name!r})") == NOT_FOUND, name


def test_a_handle_that_is_none_is_refused_unread(nvml: Program) -> None:
    for handle in ("0", "1", "4096", "ctypes.addressof(ctypes.c_int())", "2**64 - 1"):
        wrong = f"ctypes.c_void_p({handle})"
        assert nvml.error(f"nvmlDeviceGetName({wrong})") == INVALID_ARGUMENT
        assert nvml.error(f"nvmlEventSetWait_v2({wrong}, 0)") == INVALID_ARGUMENT
        assert nvml.error(f"nvmlGpuInstanceGetInfo({wrong})") == INVALID_ARGUMENT


def test_no_function_falls_over_null_pointers(node: SimulatedNode, nvml: Program) -> None:
    """Every function of the library, with null pointers only, and then on a valid handle with null outputs."""
    listed = subprocess.check_output(["nm", "-D", "--defined-only", str(node.library("nvml"))], text=True)
    names = {line.split()[-1] for line in listed.splitlines()} - {"nvmlErrorString", "nvmlShutdown"}
    of_a_card = {name for name in names if name.startswith("nvmlDeviceGet") and "Handle" not in name}
    refused = {INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE}
    without = {name: nvml.ask(f"library.{name}(*[None] * 8)") for name in sorted(names)}
    assert {name for name, result in without.items() if result not in refused} == {
        "nvmlInit",
        "nvmlInitWithFlags",
        "nvmlInit_v2",
    }
    of_a_card -= {"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"}
    empty = {name: nvml.ask(f"library.{name}(card, *[None] * 7)") for name in sorted(of_a_card)}
    assert set(empty.values()) <= refused


def test_older_versions_of_the_address_fill_their_smaller_structs(nvml: Program) -> None:
    for version, size in (("", 32), ("_v2", 36), ("_v3", 68)):
        nvml.ask("(place := (ctypes.c_ubyte * 80)(*[0xaa] * 80)) and None")
        assert nvml.ask(f"library.nvmlDeviceGetPciInfo{version}(card, place)") == 0
        assert nvml.ask("list(place)")[size:] == [0xAA] * (80 - size)
        assert nvml.ask("list(place)")[size - 1] != 0xAA
        assert nvml.ask("bytes(place)[:12]") == "0000:18:00.0"


def test_what_consumer_cards_lack_is_not_supported(nvml: Program) -> None:
    nvml.ask("(game := nvmlDeviceGetHandleByIndex(2)) and None")
    for lacking in ("EccMode", "MigMode", "RemappedRows", "RetiredPagesPendingStatus"):
        assert nvml.error(f"nvmlDeviceGet{lacking}(game)") == NOT_SUPPORTED
    assert nvml.error("nvmlDeviceGetNvLinkState(game, 0)") == NOT_SUPPORTED
    assert nvml.ask("nvmlDeviceGetNumFans(game)") > 0
    assert nvml.ask("nvmlDeviceGetNumFans(card)") == 0


def test_cards_of_one_node_know_their_distance(nvml: Program) -> None:
    nvml.ask("(cards := [nvmlDeviceGetHandleByIndex(i) for i in range(3)]) and None")
    assert nvml.ask("nvmlDeviceGetTopologyCommonAncestor(cards[0], cards[0])") == 0
    level = nvml.ask("nvmlDeviceGetTopologyCommonAncestor(cards[0], cards[1])")
    assert nvml.ask("nvmlDeviceGetTopologyCommonAncestor(cards[1], cards[0])") == level
    nearest = f"[nvmlDeviceGetIndex(one) for one in nvmlDeviceGetTopologyNearestGpus(cards[0], {level})]"
    assert 1 in nvml.ask(nearest)


def test_links_lead_from_card_to_card(nvml: Program) -> None:
    links = nvml.ask("[nvmlDeviceGetNvLinkState(card, link) for link in range(18)]")
    assert links == [1] * 18
    assert nvml.error("nvmlDeviceGetNvLinkState(card, 18)") == INVALID_ARGUMENT


def test_affinity_is_that_of_the_nearer_half_of_the_processors(nvml: Program) -> None:
    first = nvml.ask("list(nvmlDeviceGetCpuAffinity(card, 2))")
    assert first == [0x00000000FFFFFFFF, 0x00000000FFFFFFFF]
    assert nvml.ask("list(nvmlDeviceGetMemoryAffinity(card, 1, 0))") == [1]
    assert nvml.ask("list(nvmlDeviceGetCpuAffinity(card, 1))") == first[:1]


def test_a_program_without_device_nodes_sees_no_cards(node: SimulatedNode) -> None:
    (node.root / "dev/nvidia1").unlink()
    with program(node) as nvml:
        assert nvml.ask("nvmlDeviceGetCount()") == 2
        assert nvml.ask("nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(1))") == card_uuid(NODE, 2)
        assert nvml.error(f"nvmlDeviceGetHandleByUUID('{card_uuid(NODE, 1)}')") == NOT_FOUND


def test_values_by_number_say_each_whether_there_is_one(nvml: Program) -> None:
    energy, temperature, nothing = nvml.ask("nvmlDeviceGetFieldValues(card, [83, 308, 9999])")
    assert (energy["nvmlReturn"], energy["valueType"]) == (0, 3)
    assert energy["value"]["ullVal"] > 0
    assert temperature["value"]["uiVal"] == nvml.ask("nvmlDeviceGetTemperature(card, 0)")
    assert nothing["nvmlReturn"] == NOT_SUPPORTED
