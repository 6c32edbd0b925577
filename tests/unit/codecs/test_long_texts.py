"""No long text is cached: users write these texts, and the cache would fill the scheduler's memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping

import pytest

from partage_dialects.amounts import read_decimal, read_whole
from partage_plugins.codecs import parse_quantity
from partage_plugins.errors import PartageError


def _quantity(said: Mapping[str, str], key: str, **_bounds: object) -> object:
    return parse_quantity(said[key])


@pytest.mark.slow
@pytest.mark.parametrize("read", [_quantity, read_whole, read_decimal])
def test_a_text_that_is_too_long_is_refused_and_forgotten(read: Callable[..., object]) -> None:
    tracemalloc.start()
    try:
        for number in range(40):
            with pytest.raises(PartageError):
                read({"key": f"{number}" + "x" * 100_000}, "key", allowed="a number", largest=9)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
