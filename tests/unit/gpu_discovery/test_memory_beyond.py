"""The operator sets how much may be promised beyond each card's memory; the default is nothing."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from partage_plugins.api.gpu import MIB
from unit.gpu_discovery.making import ONE, TWO, MadeNode

GIB = 1 << 30


def beyond(node: MadeNode, setting: str) -> dict[str, int]:
    node.settings = {"PARTAGE_GPU_MEMORY_BEYOND": setting}
    node.begin()
    return {card.id: card.beyond_bytes for card in node.look()}


def test_without_a_word_nothing_is_promised_beyond(node: MadeNode) -> None:
    assert {card.beyond_bytes for card in node.look()} == {0}


def test_bytes_are_the_same_of_every_card_and_percent_are_of_its_own_memory(node: MadeNode) -> None:
    assert beyond(node, "40Gi") == {ONE: 40 * GIB, TWO: 40 * GIB}
    half = {card.id: card.memory_bytes // 2 // MIB * MIB for card in node.look()}
    assert beyond(node, "50%") == half


def test_the_last_entry_that_chooses_a_card_holds(node: MadeNode) -> None:
    assert beyond(node, f"8Gi, 1:4Gi, {TWO}:2Gi") == {ONE: 8 * GIB, TWO: 2 * GIB}
    assert beyond(node, "1:4Gi") == {ONE: 0, TWO: 4 * GIB}
    assert beyond(node, "model=*:4Gi,0:0") == {ONE: 0, TWO: 4 * GIB}


@pytest.mark.parametrize("entry", ["7", "GPU-none", "model=nothing"])
def test_an_entry_that_chooses_no_card_is_told(node: MadeNode, entry: str) -> None:
    with capture_logs() as logs:
        assert set(beyond(node, f"{entry}:8Gi").values()) == {0}
    assert f"PARTAGE_GPU_MEMORY_BEYOND has {entry}, which chooses no card of this node" in str(logs)


def test_what_was_set_before_a_restart_is_not_what_is_set_now(node: MadeNode) -> None:
    assert beyond(node, "40Gi") == {ONE: 40 * GIB, TWO: 40 * GIB}
    assert beyond(node, "0") == {ONE: 0, TWO: 0}
