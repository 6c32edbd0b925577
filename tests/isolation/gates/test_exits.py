"""Metered programs end while the card has work of them, and nothing of ours is in their way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.isolation.exits import WAYS, ends, plain, wrong_end
from bench.isolation.place import Container

pytestmark = pytest.mark.slow
TIMES = 4


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with ends() as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_a_program_may_end_without_a_wait(container: Container, way: str) -> None:
    assert [wrong_end(container, way, plain()) for _ in range(TIMES)] == [None] * TIMES
