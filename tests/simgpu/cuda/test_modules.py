"""Modules, libraries, functions, and launches of these."""

from __future__ import annotations

from pathlib import Path

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow

NAMES = {"sim_2ms": 2, "sim_3000us_of_work": 3, "sim_4000000ns": 4, "sim_5msx": 0.01, "sim_": 0.01, "_Z1f": 0.01}


def test_a_function_runs_as_long_as_its_name_says_and_any_other_10_us(programs: Programs) -> None:
    took = programs.run(f"""
        begin(); s = stream(); launch("sim_500ms", s); marks = [recorded(s)]
        for name in {list(NAMES)}: launch(name, s); marks.append(recorded(s))
        tell([elapsed(a, b) for a, b in zip(marks, marks[1:])])
    """)
    assert took == pytest.approx(list(NAMES.values()), abs=0.0001)


def test_sim_arg_runs_as_long_as_its_first_parameter_says(programs: Programs) -> None:
    took = programs.run("""
        begin(); s = stream(); k = kernel("sim_arg"); word = ctypes.c_uint64(7_000_000); size = ctypes.c_size_t(8)
        params = (ctypes.c_void_p * 1)(ctypes.addressof(word))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(word), 2, ctypes.addressof(size), 0)
        launch("sim_500ms", s); a = recorded(s)
        call("cuLaunchKernel", k, 1, 1, 1, 1, 1, 1, 0, s, params, None); b = recorded(s)
        call("cuLaunchKernel", k, 1, 1, 1, 1, 1, 1, 0, s, None, extra); c = recorded(s)
        call("cuFuncSetBlockShape", k, 8, 1, 1); call("cuParamSetv", k, 0, ctypes.byref(word), 8)
        call("cuLaunchGridAsync", k, 2, 2, s); d = recorded(s)
        tell([elapsed(a, b), elapsed(b, c), elapsed(c, d), launching(k)])
    """)
    assert took == pytest.approx([7, 7, 7, 1], abs=0.0001)


def test_a_cooperative_launch_must_fit_on_the_card_at_once(programs: Programs) -> None:
    answers = programs.run("""
        begin(); k = kernel("sim_1us")
        def grid(blocks): return ask("cuLaunchCooperativeKernel", k, blocks, 1, 1, 1024, 1, 1, 0, 0, None)
        tell([grid(1 << 20), grid(132)])
    """)
    assert answers == [720, 0]


def test_a_function_of_a_module_launches_only_in_its_own_context(programs: Programs) -> None:
    answers = programs.run("begin(0); k = kernel('sim_1us'); begin(1); tell(launching(k))")
    assert answers == 400


def test_a_launch_with_attributes_is_a_launch(programs: Programs) -> None:
    took = programs.run("""
        begin(); s = stream(); k = kernel("sim_6ms")
        class Config(ctypes.Structure):
            _fields_ = [("shape", ctypes.c_uint * 7), ("stream", ctypes.c_uint64), ("attributes", ctypes.c_void_p),
                        ("count", ctypes.c_uint)]
        config = Config((1,) * 6 + (0,), s, None, 0)
        launch("sim_500ms", s); a = recorded(s); call("cuLaunchKernelEx", ctypes.byref(config), k, None, None)
        tell(elapsed(a, recorded(s)))
    """)
    assert took == pytest.approx(6, abs=0.0001)


def test_files_that_are_not_there_are_not_loaded(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"image")
    answers = programs.run(f"""
        begin(); one = ctypes.byref(ctypes.c_uint64())
        tell([ask("cuModuleLoad", one, path) for path in (b"/nowhere", {str(tmp_path / "image")!r}.encode())])
    """)
    assert answers == [301, 0]
