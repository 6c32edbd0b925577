"""At the limit: CUDA_ERROR_OUT_OF_MEMORY and nothing else, not before, and nothing is lost by it."""

from __future__ import annotations

import pytest

from isolation.memory.stage import BLOCK, CHUNK, LIMIT, MIB, OUT_OF_MEMORY, Place, Program
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow
SETUP = (
    "s = stream()",
    "p = make_pool()",
    "d, m = make_pool(where=DOMAIN), make_pool(kind=MANAGED)",
    "h0 = create(2 << 20)",
    "g = captured(s, lambda: free_async(alloc_async(64 << 20, s), s))[0]",
)
TOO_MUCH = {
    "alloc": "written('cuMemAlloc_v2', 64 << 20)",
    "managed": "written('cuMemAllocManaged', 64 << 20, 1)",
    "pool": "written('cuMemAllocAsync', 64 << 20, s)",
    "per-thread pool": "written('cuMemAllocAsync_ptsz', 64 << 20, 0)",
    "own pool": "written('cuMemAllocFromPoolAsync', 64 << 20, p, s)",
    "own pool, per thread": "written('cuMemAllocFromPoolAsync_ptsz', 64 << 20, p, 0)",
    "pool of a domain": "written('cuMemAllocFromPoolAsync', 64 << 20, d, s)",
    "managed pool": "written('cuMemAllocFromPoolAsync', 64 << 20, m, s)",
    "default managed pool": "written('cuMemAllocFromPoolAsync', 64 << 20, pool_at(DEVICE, MANAGED), s)",
    "domain": "written('cuMemCreate', 64 << 20, properties(where=DOMAIN), 0)",
    "virtual": "written('cuMemCreate', 64 << 20, properties(), 0)",
    "array": "written('cuArray3DCreate_v2', words(8192, 8192, 0) + words(1, 1, 0, 0, width=4))",
    "flat array": "written('cuArrayCreate_v2', words(8192, 8192) + words(1, 1, width=4))",
    "mipmaps": "written('cuMipmappedArrayCreate', words(8192, 8192, 0) + words(1, 1, 0, 0, width=4), 3)",
    "pitch": "written('cuMemAllocPitch_v2', ctypes.byref(WORD()), 8192, 8192, 4)",
    "graph": "(cuda.cuGraphLaunch(WORD(g), WORD(s)), 77)",
}


def test_all_of_the_limit_can_be_had_and_not_a_block_more(one: Program) -> None:
    one.ask(f"a = alloc({LIMIT})")
    assert one.error("alloc(1)") == OUT_OF_MEMORY
    one.ask("free(a)")
    one.ask(f"b = [alloc({BLOCK}) for _ in range({LIMIT // BLOCK})]")
    assert one.error("alloc(1)") == OUT_OF_MEMORY
    assert one.held == LIMIT


@pytest.mark.parametrize("way", TOO_MUCH)
def test_what_does_not_fit_is_refused_and_nothing_is_written(one: Program, way: str) -> None:
    """If the broker is not sure it is asked again; only the first request of the refused call is a new one."""
    for line in SETUP:
        one.ask(line)
    one.ask(f"a = alloc({LIMIT - 63 * MIB})")
    broker, before = one.place.broker, one.used
    broker.is_sure = False
    asked = len(broker.said(What.LEND))
    assert one.ask(TOO_MUCH[way]) == [OUT_OF_MEMORY, 77]
    again = [packet.is_again for packet in broker.said(What.LEND)[asked:]]
    assert again == [False] + [True] * (len(again) - 1)
    assert len(again) > 1
    assert (one.used, one.held) == (before, before)
    one.ask("free(a)")
    assert one.ask(TOO_MUCH[way])[0] == 0


@pytest.mark.parametrize("take", ["alloc({})", "alloc_async({})", "create({})", "alloc_from(make_pool(), {})"])
def test_a_pool_is_trimmed_before_anything_is_refused(one: Program, take: str) -> None:
    one.ask("pool_set(pool_of(), 4, 1 << 40)")
    one.ask(f"free_async(alloc_async({LIMIT - CHUNK}))")
    one.ask("call('cuCtxSynchronize')")
    assert one.held == LIMIT - CHUNK
    one.ask(take.format(LIMIT - CHUNK))
    assert one.ask("pool_get(pool_of(), 4)") == 1 << 40


def test_a_capture_does_not_notice_that_room_is_made_beside_it(one: Program) -> None:
    """Our calls to make room are forbidden to the thread by the capture's mode."""
    one.ask("pool_set(pool_of(), 4, 1 << 40)")
    one.ask(f"free_async(alloc_async({LIMIT - CHUNK}))")
    one.ask("call('cuCtxSynchronize')")
    one.ask("s, other, p = stream(), stream(), make_pool()")
    one.ask("call('cuStreamBeginCapture_v2', s, 0)")
    one.ask(f"a = alloc_from(p, {LIMIT - CHUNK}, other)")
    one.ask("call('cuStreamEndCapture', s, ctypes.byref(WORD()))")


def test_memory_that_graphs_keep_goes_back_before_anything_is_refused(one: Program) -> None:
    one.ask("s = stream()")
    one.ask(f"g = captured(s, lambda: free_async(alloc_async({LIMIT // 2 + MIB}, s), s))[0]")
    one.ask("call('cuGraphLaunch', g, s)")
    one.ask("synchronize(s)")
    one.ask(f"a = alloc({LIMIT // 2 + MIB})")
    assert one.error("call('cuGraphLaunch', g, s)") == OUT_OF_MEMORY
    one.ask("free(a)")
    one.ask("call('cuGraphLaunch', g, s)")


def test_a_graph_may_be_captured_and_instantiated_where_it_could_not_be_launched(one: Program) -> None:
    one.ask("s = stream()")
    one.ask(f"a = alloc({LIMIT - BLOCK})")
    one.ask("g = captured(s, lambda: free_async(alloc_async(5 << 20, s), s))[0]")
    assert one.error("call('cuGraphLaunch', g, s)") == OUT_OF_MEMORY


def test_a_card_that_was_not_granted_has_no_memory(place: Place) -> None:
    with place.program(device=None) as one:
        one.ask("call('cuInit', 0)")
        assert one.error("start(1)") == OUT_OF_MEMORY
        assert one.ask("told('cuDeviceTotalMem_v2', 1)") == 0
        assert one.error("create(2 << 20, device=1)") == OUT_OF_MEMORY
        assert one.error("make_pool(device=1)") == OUT_OF_MEMORY


def test_two_programs_share_one_limit(place: Place) -> None:
    with place.program() as one, place.program() as other:
        place.broker.gives_credit = False
        one.ask(f"a = alloc({LIMIT - 10 * MIB})")
        assert other.error("alloc(11 << 20)") == OUT_OF_MEMORY
        other.ask("b = alloc(10 << 20)")
        one.ask("free(a)")
        other.ask("c = alloc(100 << 20)")


def test_credit_is_spent_without_a_message(one: Program) -> None:
    one.ask("alloc(2 << 20)")
    before = len(one.place.broker.heard)
    one.ask("a = [alloc(2 << 20) for _ in range(8)]")
    one.ask("[free(x) for x in a]")
    assert len(one.place.broker.heard) == before


def test_what_is_freed_beyond_the_credit_goes_back(one: Program) -> None:
    one.ask("a = alloc(300 << 20)")
    one.ask("free(a)")
    broker = one.place.broker
    broker.wait(lambda: broker.lent() <= LIMIT // 16, "what is free goes back")
    assert broker.said(What.RETURN)


def test_recalled_credit_goes_back_and_is_asked_for_again(one: Program) -> None:
    broker = one.place.broker
    one.ask("a = alloc(2 << 20)")
    assert broker.lent() > BLOCK
    broker.recall(one.pid)
    broker.wait(lambda: broker.lent() == BLOCK, "credit goes back")
    one.ask("b = alloc(2 << 20)")
    assert broker.lent() >= 2 * BLOCK


def test_a_recall_is_answered_even_if_there_is_nothing_to_give(one: Program) -> None:
    broker = one.place.broker
    broker.gives_credit = False
    one.ask("a = alloc(2 << 20)")
    broker.recall(one.pid)
    broker.wait(lambda: bool(broker.said(What.RETURN)), "the recall is answered")
    assert broker.lent() == BLOCK


def test_a_limit_that_is_lowered_refuses_until_enough_is_freed(one: Program) -> None:
    broker = one.place.broker
    broker.gives_credit = False
    one.ask("a = alloc(200 << 20)")
    one.ask("b = alloc(200 << 20)")
    broker.limits[0] = 256 * MIB
    assert one.error("alloc(2 << 20)") == OUT_OF_MEMORY
    assert one.ask("info()") == [0, 256 * MIB]
    one.ask("free(a)")
    one.ask("alloc(2 << 20)")
