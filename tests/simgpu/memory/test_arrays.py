"""Arrays cost what their format implies, and contain what was copied to them."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import INVALID_HANDLE, KIB, Program, rounded, used

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


def test_arrays_go_with_their_context_deferred_ones_too(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask('other = told("cuCtxCreate_v2", 0, 0)')
    one.ask(f"made = [array(99, 99), array(64, 32, kind={NV12}, channels=3, flags={DEFERRED}), mipmaps(99, 99, 3)]")
    one.ask('call("cuCtxDestroy_v2", other)')
    one.ask("start()")
    assert used(node) == before
    for handle in ("made[0]", "made[1]"):
        assert one.error(f'call("cuArrayDestroy", {handle})') == INVALID_HANDLE
