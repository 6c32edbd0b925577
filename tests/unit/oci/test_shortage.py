"""A message explains why a pod finds no card on this machine, for each reason of the allocator."""

from __future__ import annotations

from partage_gpu.allocator.reasons import MEMORY_BEYOND, NO_MODEL, REASONS
from partage_oci.shortage import WORDS, CardRoom, shortage
from partage_plugins.api.card_memory import Promised
from support.gpu_fleet import GIB, ask, card


def test_every_reason_of_the_allocator_has_words_of_its_own() -> None:
    words = {code: say([ask(0, spare_share=True)]) for code, say in WORDS.items()}
    assert set(words) == {reason.code for reason in (*REASONS, MEMORY_BEYOND, NO_MODEL)}
    assert words.pop("gpu/memory-beyond") == words["gpu/memory"]
    assert len(set(words.values())) == len(words)
    assert words["gpu/share"] == "no card has a share of 1 milli left"


def test_the_most_that_is_free_is_more_for_one_that_moves() -> None:
    full = MEMORY_BEYOND.of("card 16 GiB, …")
    room = CardRoom(card("a0", beyond_bytes=16 * GIB), 100, Promised(total=12 * GIB, fixed=0, turn=12 * GIB))
    said = [shortage(full, [ask(gib=17, movable=movable)], [room]).why for movable in (False, True)]
    assert [each.rpartition("milli and ")[2] for each in said] == ["4 GiB (card 0)", "16 GiB (card 0)"]
