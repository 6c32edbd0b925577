"""A gang that is on several nodes with parts of cards: what its owner is told. Pure.

Leases are together on one node alone. Who has whole cards waits for no lease, and is told nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from partage_plugins.vocabulary import Gang, NodeName
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.usage import usages
from partage_scheduler.cycle import Bind

REASON: Final = "GangSpansNodes"
MEASURED: Final = (
    "on simulated cards, two containers with 30 % each beside floods had 2 % of the collectives that their shares are "
    "worth, and 97 % as a gang on one node"
)


def spans(gang: Gang, binds: Sequence[Bind], on: Mapping[NodeName, int]) -> str | None:
    """The sentence, where these make the gang one of several nodes, or of one more.

    `on`: how many of its pods are on each node, these included.
    """
    here = Counter(bind.decision.node for bind in binds)
    has_parts = any(usage.share_milli < WHOLE_MILLI for bind in binds for usage in usages(bind.allocation))
    if len(on) < 2 or not has_parts or all(on[node] > number for node, number in here.items()):  # noqa: PLR2004
        return None
    return (
        f"gang {gang.name} is on {len(on)} nodes, and its pods have parts of cards. Their leases are together on one "
        f"node only: a collective that spins for its peers wastes turns ({MEASURED}). Ask for whole cards, or keep the "
        "gang on one node by pod affinity"
    )
