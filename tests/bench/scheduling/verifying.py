"""External verification of a scheduler's results: every signature, every card's share and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from partage_base.keyring import KeyFolders, load_public_keys
from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION, GPU_MILLI, SIGNATURE
from partage_plugins.codecs import decode_allocation, verify
from partage_scheduler.objects import ApiPod
from support.gpu_fleet import GIB

_WHOLE_MILLI, _CARD_BYTES = 1000, 16 * GIB


def verified(pods: Iterable[ApiPod], root: Path) -> Counter[str]:
    """The numbers of bound pods and of cards in use; raises if a signature is wrong or a card is overcommitted."""
    keys, shares, memory = load_public_keys(KeyFolders.at_root(root).public).keys, Counter[str](), Counter[str]()
    counts = Counter[str]()
    for pod in pods:
        counts["bound" if pod.node else "waits"] += 1
        notes = pod.metadata.annotations
        if ALLOCATION not in notes:
            if pod.node and GPU_MILLI in pod.spec.containers[0].resources.limits:
                raise AssertionError(f"pod {pod.name} is bound without the cards that it asks for")
            continue
        verify(notes[ALLOCATION], notes[SIGNATURE], keys)
        allocation = decode_allocation(notes[ALLOCATION], [GPU])
        if (allocation.pod, allocation.node) != (pod.uid, pod.node):
            raise AssertionError(f"pod {pod.name} has another one's allocation")
        for grant in (grant for each in allocation.of(GPU).values() for grant in each):
            shares[grant.card] += grant.share_milli
            memory[grant.card] += grant.memory_bytes
    if max(shares.values(), default=0) > _WHOLE_MILLI or max(memory.values(), default=0) > _CARD_BYTES:
        raise AssertionError("a card is over-committed")
    counts["cards in use"] = len(shares)
    return counts
