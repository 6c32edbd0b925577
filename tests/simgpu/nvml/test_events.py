"""Each program that waits for an event gets it once, and no other does."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    TIMEOUT,
    UNKNOWN,
    Program,
    program,
)
from support.steered import Said, eventually

pytestmark = pytest.mark.slow

XID = 8
LONG_MS = 60_000


def register(one: Program, *, card: str = "card", kinds: str = "nvmlEventTypeXidCriticalError") -> None:
    """Bind the program's `events` to a set that waits for XIDs of its first card."""
    one.ask("(events := nvmlEventSetCreate()) and None")
    one.ask(f"nvmlDeviceRegisterEvents({card}, {kinds}, events)")


def wait(one: Program, timeout_ms: int = LONG_MS) -> tuple[int, int, int]:
    """The card, the kind and the data of the next event."""
    one.ask(f"(event := nvmlEventSetWait_v2(events, {timeout_ms})) and None")
    index, kind, data = one.ask("[nvmlDeviceGetIndex(event.device), event.eventType, event.eventData]")
    return index, kind, data


def test_an_xid_wakes_who_waits(node: SimulatedNode, nvml: Program) -> None:
    register(nvml)
    nvml.say(f"(event := nvmlEventSetWait_v2(events, {LONG_MS})) and [event.eventType, event.eventData]")
    eventually(nvml.waits_in_futex, "the program waits")
    node.control("xid 0 62")
    assert nvml.answer() == [XID, 62]


def test_every_set_and_every_program_gets_every_event(node: SimulatedNode, nvml: Program) -> None:
    with program(node) as other:
        for one in (nvml, other):
            register(one)
        nvml.ask("(first := events) and None")
        register(nvml)
        node.control("xid 0 62")
        assert wait(nvml) == wait(other) == (0, XID, 62)
        assert nvml.ask("nvmlEventSetWait_v2(first, 0).eventData") == 62


def test_only_registered_cards_and_kinds_are_told(node: SimulatedNode, nvml: Program) -> None:
    register(nvml, card="nvmlDeviceGetHandleByIndex(1)")
    node.control("xid 0 62")
    node.control("ecc 1 corrected 1")
    assert nvml.error("nvmlEventSetWait_v2(events, 0)") == TIMEOUT
    node.control("xid 1 69")
    assert wait(nvml) == (1, XID, 69)


def test_what_happened_before_registration_is_not_told(node: SimulatedNode, nvml: Program) -> None:
    node.control("xid 0 62")
    nvml.ask("(events := nvmlEventSetCreate()) and None")
    node.control("xid 0 62")
    nvml.ask("nvmlDeviceRegisterEvents(card, nvmlEventTypeXidCriticalError, events)")
    assert nvml.error("nvmlEventSetWait_v2(events, 0)") == TIMEOUT


def test_more_events_than_the_driver_keeps_lose_the_oldest_and_make_up_none(node: SimulatedNode, nvml: Program) -> None:
    register(nvml)
    for number in range(200):
        node.control(f"xid 0 {1000 + number}")
    found = []
    while nvml.error("(event := nvmlEventSetWait_v2(events, 0)) and None") == 0:
        found.append(nvml.ask("event.eventData"))
    assert found == [1000 + number for number in range(200 - len(found), 200)]
    assert len(found) == 64


def test_a_freed_set_is_one_no_more(nvml: Program) -> None:
    register(nvml)
    nvml.ask("nvmlEventSetFree(events)")
    assert nvml.error("nvmlEventSetWait_v2(events, 0)") == INVALID_ARGUMENT
    assert nvml.error("nvmlEventSetFree(events)") == INVALID_ARGUMENT
    assert nvml.error("nvmlDeviceRegisterEvents(card, 8, events)") == INVALID_ARGUMENT


def test_kinds_that_a_card_does_not_have_cannot_be_registered(nvml: Program) -> None:
    nvml.ask("(game := nvmlDeviceGetHandleByIndex(2)) and (events := nvmlEventSetCreate()) and None")
    kinds = nvml.ask("[nvmlDeviceGetSupportedEventTypes(one) for one in (card, game)]")
    assert kinds[0] & 0b1011 == 0b1011
    assert kinds[1] & 0b1011 == 0b1000
    assert nvml.error("nvmlDeviceRegisterEvents(game, nvmlEventTypeDoubleBitEccError, events)") == NOT_SUPPORTED


def test_the_first_version_of_wait_fills_its_smaller_struct(node: SimulatedNode, nvml: Program) -> None:
    register(nvml)
    node.control("xid 0 62")
    nvml.ask("(words := (ctypes.c_uint64 * 4)(*[7] * 4)) and None")
    assert nvml.ask("library.nvmlEventSetWait(events, words, 0)") == 0
    assert nvml.ask("list(words)")[1:] == [XID, 62, 7]


def test_a_lost_card_is_told_and_then_ends_every_wait(node: SimulatedNode, nvml: Program) -> None:
    register(nvml)
    nvml.say(f"(event := nvmlEventSetWait_v2(events, {LONG_MS})) and event.eventData")
    eventually(nvml.waits_in_futex, "the program waits")
    node.control("lose 0")
    assert nvml.answer() == 79
    assert nvml.error(f"nvmlEventSetWait_v2(events, {LONG_MS})") == GPU_IS_LOST


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_driver_that_goes_ends_every_wait(node: SimulatedNode, nvml: Program, how: str) -> None:
    register(nvml)
    nvml.say(f"nvmlEventSetWait_v2(events, {LONG_MS})")
    eventually(nvml.waits_in_futex, "the program waits")
    getattr(node, how)()
    with pytest.raises(Said) as said:
        nvml.answer()
    assert said.value.number == UNKNOWN


def test_a_shutdown_ends_the_waits_of_other_threads(nvml: Program) -> None:
    register(nvml)
    waiting = f"said.append(library.nvmlEventSetWait_v2(events, byref(c_nvmlEventData_t()), {LONG_MS}))"
    nvml.ask(f"(said := []) or (other := threading.Thread(target=lambda: {waiting})) and other.start()")
    nvml.ask("nvmlShutdown()")
    assert nvml.ask("other.join() or said") != [0]
    nvml.ask("nvmlInit()")
    assert nvml.ask("nvmlDeviceGetCount()") == 3
