"""Picks a node and devices for a pod, or explains why none fits. Pure: no cluster, clock or thread.

`slots` numbers the nodes, `free_resources` has their free CPU and memory, `ledger` has what each pod holds (and is the
record that is replayed to a recreated plugin), `score_cache` caches fits and scores for each request shape, `reasons`
counts why nothing fits. `decider` joins them, and calls plugins only through the protocol in `framework`.
"""

from partage_scheduler.decision.decider import Decider, Decision
from partage_scheduler.decision.framework import Framework
from partage_scheduler.decision.free_resources import INSUFFICIENT
from partage_scheduler.decision.ledger import Holding, Ledger
from partage_scheduler.decision.reasons import Explanation, FilteredNodes
from partage_scheduler.decision.score_cache import only
from partage_scheduler.decision.slots import SlotTable

__all__ = [
    "INSUFFICIENT",
    "Decider",
    "Decision",
    "Explanation",
    "FilteredNodes",
    "Framework",
    "Holding",
    "Ledger",
    "SlotTable",
    "only",
]
