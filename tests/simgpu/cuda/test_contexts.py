"""Contexts: primary ones, others, and the stack of each thread."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run, running

pytestmark = pytest.mark.slow


def test_a_primary_context_is_one_however_often_it_is_retained(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        call("cuInit", 0); a, b = made("cuDevicePrimaryCtxRetain", 0), made("cuDevicePrimaryCtxRetain", 0)
        flags, active = ctypes.c_uint(), ctypes.c_int()
        def state():
            call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active)); return active.value
        call("cuCtxSetCurrent", a); told = [a == b, state()]
        call("cuDevicePrimaryCtxRelease_v2", 0); told += [state(), ask("cuCtxSynchronize")]
        call("cuDevicePrimaryCtxRelease_v2", 0); told += [state(), ask("cuCtxSynchronize")]
        told.append(ask("cuDevicePrimaryCtxRelease_v2", 0))
        tell([*told, made("cuDevicePrimaryCtxRetain", 0) == a, ask("cuCtxSynchronize")])
        """,
    )
    assert answers == [True, 1, 1, 0, 0, 709, 201, True, 0]


def test_a_reset_ends_streams_but_not_the_context(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); call("cuDevicePrimaryCtxReset_v2", 0)
        tell([ask("cuStreamQuery", s), ask("cuStreamQuery", stream())])
        """,
    )
    assert answers[-1] == 0


def test_the_stack_of_contexts_belongs_to_a_thread(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        call("cuInit", 0); a = made("cuCtxCreate_v2", 0, 0); b = made("cuCtxCreate_v2", 0, 1)
        def current(): return {a: "a", b: "b", 0: None}[made("cuCtxGetCurrent")]
        told = [current(), made("cuCtxGetDevice", kind=ctypes.c_int)]
        other = threading.Thread(target=lambda: told.extend([current(), ask("cuCtxSynchronize")]))
        other.start(); other.join()
        call("cuCtxPushCurrent_v2", a); told.append(current()); made("cuCtxPopCurrent_v2"); told.append(current())
        call("cuCtxSetCurrent", a); told.append(current()); call("cuCtxDestroy_v2", b); call("cuCtxDestroy_v2", a)
        told += [current(), ask("cuCtxSynchronize"), ask("cuCtxDestroy_v2", a)]
        tell(told)
        """,
    )
    assert answers == ["b", 1, None, 201, "a", "b", "a", "a", 709, 709]


def test_only_the_first_context_of_a_process_takes_memory_and_the_last_one_returns_it(node: SimulatedNode) -> None:
    with running(
        node,
        """
        call("cuInit", 0); a = made("cuCtxCreate_v2", 0, 0); tell(0); input()
        b = made("cuCtxCreate_v2", 0, 0); tell(0); input(); call("cuCtxDestroy_v2", a); tell(0); input()
        call("cuCtxDestroy_v2", b); tell(0); input()
        """,
    ) as program:
        used: list[int] = []
        for _ in range(4):
            program.hear()
            used.append(node.status()[0].used_bytes)
            program.say()
    assert used[0] == used[1] == used[2] > 100 << 20
    assert used[3] == 0


def test_flags_and_limits_are_kept_and_wrong_ones_refused(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        call("cuInit", 0); made("cuCtxCreate_v2", 4, 0); call("cuCtxSetLimit", 0, 4096)
        tell([made("cuCtxGetLimit", 0), made("cuCtxGetLimit", 2), ask("cuCtxSetLimit", 77, 1),
              made("cuCtxGetFlags", kind=ctypes.c_uint)])
        """,
    )
    assert answers == [4096, 8 << 20, 215, 4]


def test_a_fork_of_a_process_that_uses_cuda_cannot_use_it(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); k = kernel("sim_1us"); read, write = os.pipe()
        if not os.fork():
            told = [ask("cuInit", 0), launching(k, s), ask("cuCtxSynchronize"), ask("cuMemFree_v2", 1 << 40),
                    ask("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))]
            os.write(write, json.dumps(told).encode()); os._exit(0)
        os.wait(); child = json.loads(os.read(read, 1000)); tell([*child, launching(k, s), ask("cuCtxSynchronize")])
        """,
    )
    assert answers == [3, 3, 3, 3, 3, 0, 0]


def test_a_fork_before_the_first_call_may_use_it(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        read, write = os.pipe()
        if not os.fork():
            begin(); launch("sim_1us"); os.write(write, str(ask("cuCtxSynchronize")).encode()); os._exit(0)
        os.wait(); begin(); tell([int(os.read(read, 10)), ask("cuCtxSynchronize")])
        """,
    )
    assert answers == [0, 0]


def test_a_context_ends_with_the_last_that_is_attached_to_it(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        call("cuInit", 0); a = made("cuCtxCreate_v2", 0, 0); told = [made("cuCtxAttach", 0) == a]
        told += [ask("cuCtxDetach", a), ask("cuCtxSynchronize"), ask("cuCtxDetach", a), made("cuCtxGetCurrent")]
        tell([*told, ask("cuCtxPushCurrent_v2", a), ask("cuCtxDetach", a)])
        """,
    )
    assert answers == [True, 0, 0, 0, 0, 709, 201]


def test_a_green_context_keeps_the_primary_one_and_ends_by_itself(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        call("cuInit", 0); g = made("cuGreenCtxCreate", 1, 0, 1); c = made("cuCtxFromGreenCtx", g)
        flags, active = ctypes.c_uint(), ctypes.c_int()
        def primary():
            call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active)); return active.value
        call("cuCtxSetCurrent", c); s = made("cuGreenCtxStreamCreate", g, 1, 0)
        told = [primary(), ask("cuCtxDestroy_v2", c), ask("cuStreamSynchronize", s)]
        told += [ask("cuGreenCtxDestroy", g), primary(), ask("cuCtxSynchronize"), ask("cuGreenCtxDestroy", g)]
        tell(told)
        """,
    )
    assert answers == [1, 201, 0, 0, 0, 709, 1]


def test_with_launch_blocking_a_launch_comes_back_when_it_is_done(node: SimulatedNode) -> None:
    lines = "begin(); s = stream(); launch('sim_50ms', s); tell(ask('cuStreamQuery', s))"
    assert run(node, lines) == 600
    assert run(node, lines, CUDA_LAUNCH_BLOCKING="1") == 0
