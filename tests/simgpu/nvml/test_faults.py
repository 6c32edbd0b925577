"""NVML faults injected by simgpud affect every call, and end on command."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import GPU_IS_LOST, UNKNOWN, Program, bare_program
from support.steered import Said, eventually

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("call", ["nvmlDeviceGetCount()", "nvmlDeviceGetName(card)", "nvmlInit()"])
def test_a_hang_holds_every_call_until_it_is_over(node: SimulatedNode, nvml: Program, call: str) -> None:
    node.control("nvml hang")
    nvml.say(f"[{call}] and 'over'")
    eventually(nvml.waits_in_futex, "the call hangs")
    assert not nvml.has_answered()
    node.control("nvml resume")
    assert nvml.answer() == "over"


def test_who_hangs_is_let_go_when_the_driver_dies(node: SimulatedNode, nvml: Program) -> None:
    node.control("nvml hang")
    nvml.say("nvmlDeviceGetCount()")
    eventually(nvml.waits_in_futex, "the call hangs")
    node.kill()
    with pytest.raises(Said) as said:
        nvml.answer()
    assert said.value.number == UNKNOWN


def test_an_answer_is_everyones_answer_but_shutdown_works(node: SimulatedNode, nvml: Program) -> None:
    node.control("nvml answer 999")
    assert nvml.error("nvmlDeviceGetCount()") == 999
    assert nvml.error("nvmlDeviceGetHandleByIndex(0)") == 999
    with bare_program(node) as other:
        assert other.error("nvmlInit()") == 999
    node.control("nvml answer 0")
    assert nvml.ask("nvmlDeviceGetCount()") == 3
    nvml.ask("nvmlShutdown()")


def test_a_delay_makes_calls_take_at_least_so_long(node: SimulatedNode, nvml: Program) -> None:
    node.control("nvml delay 50")
    nvml.ask("(began := time.monotonic()) and None")
    assert nvml.ask("[nvmlDeviceGetCount(), time.monotonic() - began >= 0.05]") == [3, True]
    node.control("nvml delay 0")


def test_a_lost_card_is_lost_to_every_call_and_the_others_are_not(node: SimulatedNode, nvml: Program) -> None:
    node.control("lose 0")
    for call in ("nvmlDeviceGetName(card)", "nvmlDeviceGetMemoryInfo(card)", "nvmlDeviceGetHandleByIndex(0)"):
        assert nvml.error(call) == GPU_IS_LOST
    assert nvml.ask("nvmlDeviceGetCount()") == 3
    assert nvml.ask("nvmlDeviceGetIndex(nvmlDeviceGetHandleByIndex(1))") == 1
    with bare_program(node) as other:
        other.ask("nvmlInit()")
        assert other.error("nvmlDeviceGetHandleByIndex(0)") == GPU_IS_LOST
    node.control("restore 0")
    assert nvml.ask("nvmlDeviceGetIndex(card)") == 0
