"""The facts that a node plugin receives about a container with grants."""

from __future__ import annotations

import msgspec
import pytest

from partage_plugins.api import GPU, CardId, GpuGrant, GpuPart, Granted

GRANT = GpuGrant(card=CardId("GPU-1"), share_milli=1, limit_milli=2, memory_bytes=3)
PART = GpuPart(driver="580.65.06", cuda="13.0", cards=())


def test_grants_and_the_nodes_part_come_typed() -> None:
    granted = Granted(gen=1, grants={GPU.name: (GRANT,)}, parts={GPU.name: PART})
    assert granted.of(GPU) == (GRANT,)
    assert granted.part(GPU) is PART


def test_a_kind_that_was_not_given_is_empty() -> None:
    granted = Granted(gen=1, grants={})
    assert granted.of(GPU) == ()
    assert granted.part(GPU) is None


def test_what_was_not_decoded_is_a_programming_error() -> None:
    granted = Granted(gen=1, grants={GPU.name: msgspec.Raw(b"[]")}, parts={GPU.name: msgspec.Raw(b"{}")})
    with pytest.raises(TypeError, match="allocation was decoded without kind 'gpu'"):
        granted.of(GPU)
    with pytest.raises(TypeError, match="inventory was decoded without kind 'gpu'"):
        granted.part(GPU)
