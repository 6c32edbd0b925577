"""Why a pod finds no card on this machine is said in words for every reason that the allocator has."""

from __future__ import annotations

from partage_cli.machine.manager.shortage import WORDS
from partage_gpu.allocator.reasons import REASONS
from support.gpu_fleet import ask


def test_every_reason_of_the_allocator_has_words_of_its_own() -> None:
    words = {code: say([ask(0, spare_share=True)]) for code, say in WORDS.items()}
    assert set(words) == {reason.code for reason in REASONS}
    assert len(set(words.values())) == len(words)
    assert words["gpu/share"] == "no card has a share of 1 milli left"
