"""A closed gate stops launches and nothing else; an open one lets them through."""

from __future__ import annotations

import time
from typing import Final

import pytest

from isolation.gates.stage import A_WHILE_S, Place, Program
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow

LAUNCHES = (
    "launch()",
    "launch(name='cuLaunchKernel_ptsz')",
    "launch(stream())",
    "launch(PER_THREAD)",
    "launch(name='cuLaunchCooperativeKernel')",
    "launch_with('cuLaunchKernelEx')",
    "launch_with('cuLaunchKernelEx_ptsz')",
    "launch_each()",
    "launch_old('cuLaunch')",
    "launch_old('cuLaunchGrid', INT(1), INT(1))",
    "launch_old('cuLaunchGridAsync', INT(1), INT(1), 0)",
    "call('cuGraphLaunch', g, 0)",
    "call('cuGraphLaunch_ptsz', g, 0)",
)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_every_way_to_launch_waits_for_the_gate(one: Program, launch: str) -> None:
    one.ask("s = stream()")
    one.ask("g = graph_of(2, 0.1, s)")
    one.say(launch)
    one.place.broker.wait_for(What.WANT, 0)
    assert not one.has_answered(within_s=A_WHILE_S)
    one.place.broker.sole()
    one.answer()
    one.ask("call('cuCtxSynchronize')")


PAST: Final = {
    "a context": ("_contexts.append(past('cuDevicePrimaryCtxRetain', 0)); use(0)",),
    "a context that is current": ("past('cuCtxCreate_v2', 0, 0)",),
    "a stream on a thread without a context": (
        "past('cuCtxCreate_v2', 0, 0); s = past('cuStreamCreate', 1); _kernels[0] = kernel()",
        "call('cuCtxPopCurrent_v2', None)",
    ),
}


@pytest.mark.parametrize("made", list(PAST))
def test_what_was_made_past_the_library_is_gated_from_its_first_launch_on(place: Place, made: str) -> None:
    with place.program(cards=0) as one:
        one.ask(f"s = 0; time.sleep({A_WHILE_S})")
        for line in PAST[made]:
            one.ask(line)
        one.say("launch(s)")
        place.broker.wait_for(What.WANT, 0)
        assert not one.has_answered(within_s=A_WHILE_S)
        place.broker.sole()
        one.answer()


def test_what_computes_nothing_goes_on_behind_a_closed_gate(one: Program) -> None:
    one.ask("a = told('cuMemAlloc_v2', 1 << 20)")
    one.ask("call('cuMemsetD8_v2', a, INT(1), 1 << 20)")
    one.ask("call('cuMemcpyDtoD_v2', a, a, 1 << 10)")
    one.ask("call('cuCtxSynchronize')")
    one.ask("call('cuMemFree_v2', a)")
    assert one.place.broker.joined == []


def test_a_process_joins_a_card_once(one: Program) -> None:
    one.place.broker.generous = True
    one.ask("launches(20)")
    one.ask("in_thread(lambda: launches(20))")
    assert one.place.broker.joined == [(one.pid, 0)]


def test_one_thread_of_all_that_wait_says_so_once_in_each_epoch(one: Program) -> None:
    broker = one.place.broker
    one.ask("ts = [in_thread(launch) for _ in range(100)] and None")
    broker.wait_for(What.WANT, 0)
    epoch = broker.close()
    broker.wait_for(What.WANT, epoch)
    time.sleep(A_WHILE_S)
    assert len(broker.heard_of(What.WANT, 0)) == len(broker.heard_of(What.WANT, epoch)) == 1
    broker.sole()
    one.ask("join_all()")
    one.ask("call('cuCtxSynchronize')")


def test_a_launch_waits_out_a_lease_that_has_ended(one: Program) -> None:
    broker = one.place.broker
    epoch = broker.timeslice(seconds=0)
    one.say("launch()")
    broker.wait_for(What.WANT, epoch)
    assert not one.has_answered(within_s=A_WHILE_S)
    broker.timeslice(seconds=30)
    one.answer()


def test_without_hints_a_grant_is_seen_all_the_same(one: Program) -> None:
    one.place.broker.gives_hints = False
    one.say("launch()")
    one.place.broker.wait_for(What.WANT, 0)
    one.place.broker.sole()
    one.answer()


def test_a_card_that_nobody_meters_has_no_gate(place: Place) -> None:
    place.broker.metered = False
    with place.program() as one:
        one.ask("launches(100)")
        one.ask("launch(stream())")
        one.ask("call('cuCtxSynchronize')")
    assert place.broker.timeslices == []


def test_a_state_of_tomorrow_is_closed(one: Program) -> None:
    one.say("launch()")
    one.place.broker.wait_for(What.WANT, 0)
    one.place.broker.line(0, 6)  # type: ignore[arg-type]  # no state of today
    assert not one.has_answered(within_s=A_WHILE_S)
    one.place.broker.sole()
    one.answer()


def test_an_error_of_the_driver_stays_its_own(one: Program) -> None:
    one.place.broker.generous = True
    assert one.error("call('cuLaunchKernel', 0, *[INT(1)] * 6, INT(0), 0, None, None)") == 400
    assert one.error("call('cuLaunchKernelEx', None, 0, None, None)") == 1
    one.ask("launch()")
