"""Picks a node and devices for a pod, or explains why none fits. Pure: no cluster, clock or thread.

`slots` numbers the nodes, `rooms` has their free CPU and memory, `ledger` has what each pod holds (and is the record
that is replayed to a recreated plugin), `standings` caches fits and scores for each request shape, `reasons` counts why
nothing fits. `decider` joins them, and calls plugins only through the protocol in `side`.
"""

from partage_scheduler.decision.decider import Decider, Decision
from partage_scheduler.decision.ledger import Holding, Ledger
from partage_scheduler.decision.reasons import Barred, Explanation
from partage_scheduler.decision.rooms import INSUFFICIENT
from partage_scheduler.decision.side import Side
from partage_scheduler.decision.slots import SlotTable
from partage_scheduler.decision.standings import only

__all__ = [
    "INSUFFICIENT",
    "Barred",
    "Decider",
    "Decision",
    "Explanation",
    "Holding",
    "Ledger",
    "Side",
    "SlotTable",
    "only",
]
