"""Arrays cost what their format says, and show what was copied to them."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import INVALID_HANDLE, INVALID_VALUE, KIB, NOT_SUPPORTED, Program, rounded, used

pytestmark = pytest.mark.slow

TILE = 64 * KIB
U8, U32, HALF, FLOAT, NV12 = 1, 3, 16, 32, 0xB0
LAYERED, CUBEMAP, SPARSE, DEFERRED = 0x01, 0x04, 0x40, 0x80


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("100", 100),
        (f"1000, 1000, kind={FLOAT}, channels=4", 16_000_000),
        (f"64, 64, 64, kind={HALF}, channels=2", 64**3 * 4),
        (f"512, 256, 10, kind={U8}, flags={LAYERED}", 512 * 256 * 10),
        (f"128, 128, 6, kind={U32}, flags={CUBEMAP}", 128 * 128 * 6 * 4),
        (f"1920, 1080, kind={NV12}, channels=3", 1920 * 1620),
    ],
)
def test_an_array_takes_its_bytes_rounded_to_tiles(node: SimulatedNode, one: Program, shape: str, size: int) -> None:
    before = used(node)
    one.ask(f"x = array({shape})")
    assert used(node) - before == rounded(size, TILE)
    one.ask('call("cuArrayDestroy", x)')
    assert used(node) == before
    assert one.error('call("cuArrayDestroy", x)') == INVALID_HANDLE


def test_mipmaps_take_all_their_levels(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("x = mipmaps(1024, 1024, 100)")
    expected = sum(rounded((1024 >> level) ** 2, TILE) for level in range(11))
    assert used(node) - before == expected
    one.ask('level = told("cuMipmappedArrayGetLevel", x, 3)')
    one.ask('told("cuMipmappedArrayGetLevel", x, 10)')
    assert one.error('told("cuMipmappedArrayGetLevel", x, 11)') == INVALID_VALUE
    assert one.error('call("cuArrayDestroy", level)') == INVALID_HANDLE
    one.ask("data = (ctypes.c_uint64 * 5)()")
    one.ask('call("cuArray3DGetDescriptor_v2", data, level)')
    assert one.ask("list(data)[:2]") == [128, 128]
    one.ask('call("cuMipmappedArrayDestroy", x)')
    assert used(node) == before
    assert one.error('call("cuArray3DGetDescriptor_v2", data, level)') == INVALID_HANDLE


def test_what_is_copied_to_an_array_comes_back(one: Program) -> None:
    one.ask("x, y, a = array(64), array(64), alloc(64)")
    one.ask('call("cuMemcpyHtoA_v2", x, 5, b"to the array", 12)')
    one.ask('call("cuMemcpyAtoA_v2", y, 10, x, 5, 12)')
    one.ask('call("cuMemcpyAtoD_v2", a, y, 10, 12)')
    assert one.ask("text(a, 12)") == "to the array"
    one.ask('call("cuMemcpyDtoA_v2", x, 0, a + 3, 3)')
    one.ask("back = ctypes.create_string_buffer(8)")
    one.ask('call("cuMemcpyAtoH_v2", back, x, 0, 3)')
    assert one.ask("back.value.decode()") == "the"
    assert one.error('call("cuMemcpyAtoH_v2", back, x, 60, 8)') == 0  # the tile goes on
    assert one.error('call("cuMemcpyAtoH_v2", back, x, 64 * KIB - 4, 8)') == INVALID_VALUE
    assert one.error('call("cuMemcpyAtoH_v2", back, 4711, 0, 8)') == INVALID_HANDLE


def test_planes_of_an_array_are_views_of_it(node: SimulatedNode, one: Program) -> None:
    one.ask(f"x = array(64, 32, kind={NV12}, channels=3)")
    before = used(node)
    one.ask('light, colour = told("cuArrayGetPlane", x, 0), told("cuArrayGetPlane", x, 1)')
    assert used(node) == before
    assert one.ask('told("cuArrayGetPlane", x, 1)') == one.ask("colour")
    assert one.error('told("cuArrayGetPlane", x, 2)') == INVALID_VALUE
    one.ask("data = (ctypes.c_uint64 * 5)()")
    one.ask('call("cuArray3DGetDescriptor_v2", data, colour)')
    assert one.ask("list(data)[:2]") == [32, 16]
    one.ask('call("cuMemcpyHtoA_v2", colour, 0, b"blue", 4)')
    one.ask("back = ctypes.create_string_buffer(8)")
    one.ask('call("cuMemcpyAtoH_v2", back, x, 64 * 32, 4)')
    assert one.ask("back.value.decode()") == "blue"


def test_requirements_are_told_of_deferred_arrays_which_take_nothing(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("data = (ctypes.c_uint64 * 4)()")
    one.ask(f"x = array(1000, 1000, kind={FLOAT}, flags={DEFERRED})")
    one.ask('call("cuArrayGetMemoryRequirements", data, x, 0)')
    assert one.ask("list(data)[:2]") == [rounded(4_000_000, TILE), TILE]
    assert used(node) == before
    assert one.error('call("cuArrayGetMemoryRequirements", data, array(9), 0)') == INVALID_VALUE


def test_sparse_arrays_are_not_supported_and_nonsense_is_refused(one: Program) -> None:
    assert one.error(f"array(64, 64, flags={SPARSE})") == NOT_SUPPORTED
    for wrong in ("array(0)", "array(64, channels=3)", "array(64, kind=77)", f"array(64, 32, 6, flags={CUBEMAP})"):
        assert one.error(wrong) == INVALID_VALUE


def test_textures_show_arrays_and_memory_that_there_are(one: Program) -> None:
    one.ask("x, sampling = array(64), bytes(104)")
    one.ask('t = told("cuTexObjectCreate", words(0, x) + bytes(128), sampling, None)')
    one.ask('s = told("cuSurfObjectCreate", words(0, x) + bytes(128))')
    one.ask("back = (ctypes.c_uint64 * 18)()")
    one.ask('call("cuTexObjectGetResourceDesc", back, t)')
    assert one.ask("back[1]") == one.ask("x")
    one.ask('call("cuTexObjectDestroy", t)')
    one.ask('call("cuSurfObjectDestroy", s)')
    assert one.error('call("cuTexObjectDestroy", t)') == INVALID_VALUE
    assert one.error('told("cuTexObjectCreate", words(0, 4711) + bytes(128), sampling, None)') == INVALID_VALUE
    one.ask('told("cuTexObjectCreate", words(2, alloc(64)) + bytes(128), sampling, None)')


def test_arrays_go_with_their_context_deferred_ones_and_parts_too(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask('other = told("cuCtxCreate_v2", 0, 0)')
    one.ask(f"made = [array(99, 99), array(64, 32, kind={NV12}, channels=3, flags={DEFERRED}), mipmaps(99, 99, 3)]")
    one.ask('parts = [told("cuArrayGetPlane", made[1], n) for n in (0, 1)]')
    one.ask('parts += [told("cuMipmappedArrayGetLevel", made[2], n) for n in (0, 1)]')
    assert one.ask("len(set(parts))") == 4
    assert one.error('call("cuArrayDestroy", parts[1])') == INVALID_HANDLE
    one.ask('call("cuCtxDestroy_v2", other)')
    one.ask("start()")
    assert used(node) == before
    for handle in ("made[0]", "made[1]", *(f"parts[{n}]" for n in range(4))):
        assert one.error(f'call("cuArrayDestroy", {handle})') == INVALID_HANDLE
