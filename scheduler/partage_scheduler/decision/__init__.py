"""Which node and which devices a pod gets, or why none. Pure: no cluster, clock or thread.

`slots` numbers the nodes, `rooms` has their CPU and memory, `ledger` has what each pod holds (and is the record from
which a plugin is told again), `standings` remembers fits and scores for each shape of request, `reasons` counts why
nothing fits. `decider` joins them, over plugins that it knows only as `side`.
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
