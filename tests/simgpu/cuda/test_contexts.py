"""Contexts: primary ones, others, and the stack of each thread."""

from __future__ import annotations

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow


def test_a_thread_begins_without_a_context(programs: Programs) -> None:
    answers = programs.run("""
        begin(); told = []
        other = threading.Thread(target=lambda: told.extend([made("cuCtxGetCurrent"), ask("cuCtxSynchronize")]))
        other.start(); other.join(); tell(told)
    """)
    assert answers == [0, 201]


def test_a_context_ends_with_the_last_that_is_attached_to_it(programs: Programs) -> None:
    answers = programs.run("""
        call("cuInit", 0); a = made("cuCtxCreate_v2", 0, 0); told = [made("cuCtxAttach", 0) == a]
        told += [ask("cuCtxDetach", a), ask("cuCtxSynchronize"), ask("cuCtxDetach", a), made("cuCtxGetCurrent")]
        tell([*told, ask("cuCtxPushCurrent_v2", a), ask("cuCtxDetach", a)])
    """)
    assert answers == [True, 0, 0, 0, 0, 709, 201]


def test_a_green_context_keeps_the_primary_one_and_ends_by_itself(programs: Programs) -> None:
    answers = programs.run("""
        call("cuInit", 0); g = made("cuGreenCtxCreate", 1, 0, 1); c = made("cuCtxFromGreenCtx", g)
        flags, active = ctypes.c_uint(), ctypes.c_int()
        def primary():
            call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active)); return active.value
        call("cuCtxSetCurrent", c); s = made("cuGreenCtxStreamCreate", g, 1, 0)
        told = [primary(), ask("cuCtxDestroy_v2", c), ask("cuStreamSynchronize", s)]
        told += [ask("cuGreenCtxDestroy", g), primary(), ask("cuCtxSynchronize"), ask("cuGreenCtxDestroy", g)]
        tell(told)
    """)
    assert answers == [1, 201, 0, 0, 0, 709, 1]


def test_with_launch_blocking_a_launch_comes_back_when_it_is_done(programs: Programs) -> None:
    lines = "begin(); s = stream(); launch('sim_500ms', s); tell(ask('cuStreamQuery', s))"
    assert programs.run(lines) == 600
    assert programs.run(lines, CUDA_LAUNCH_BLOCKING="1") == 0
