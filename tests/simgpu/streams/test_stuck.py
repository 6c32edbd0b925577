"""A kernel can be made to never end: its process waits forever, and others share the card with it."""

from __future__ import annotations

import pytest

from partage_simgpu.errors import ControlRefused
from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import Programs

PROGRAM = """
begin(); s = stream(); launch("sim_1us", s); synchronize(s); tell(0)
input(); launch("sim_1us", s); done = recorded(s)
for _ in range(100): launch("sim_1ns", s)
input(); eventually(lambda: ask("cuEventQuery", done) == 0); tell(ask("cuStreamQuery", s))
"""
UNTIL_OTHERS_ARE_DONE = "begin(); s = stream(); launch('sim_20ms', s); synchronize(s); tell(0)"


def test_the_next_kernel_of_one_process_never_ends_and_anothers_does(programs: Programs) -> None:
    with programs.running(PROGRAM) as one, programs.running(PROGRAM.replace("== 0", "== 600")) as stuck:
        assert (one.answer(), stuck.answer()) == (0, 0)
        programs.node.control(f"stick 0 {stuck.pid}")
        for each in (one, stuck):
            each.say("go")
        programs.run(UNTIL_OTHERS_ARE_DONE)
        for each in (one, stuck):
            each.say("go")
        assert (one.answer(), stuck.answer()) == (0, 600)


def test_only_one_kernel_is_made_so(programs: Programs) -> None:
    """The next one, in another stream, ends: it waits for no other."""
    with programs.running("""
        begin(); a, b = stream(), stream(); tell(0); input()
        launch("sim_1us", a); launch("sim_1us", b); synchronize(b); tell(ask("cuStreamQuery", a))
    """) as program:
        program.answer()
        programs.node.control("stick 0")
        program.say("go")
        assert program.answer() == 600


def test_with_its_process_it_is_gone_and_later_ones_know_nothing_of_it(programs: Programs) -> None:
    with programs.running("begin(); tell(0); input(); launch('sim_1us'); tell(1); input()") as program:
        program.answer()
        programs.node.control("stick 0")
        program.say("go")
        program.answer()
    assert programs.run("begin(); launch('sim_1us'); synchronize(); tell(ask('cuStreamQuery', 0))") == 0


def test_a_process_that_is_not_there_cannot_be_hit(node: SimulatedNode) -> None:
    with pytest.raises(ControlRefused, match="stick: process 1 has no context on card 0"):
        node.control("stick 0 1")
