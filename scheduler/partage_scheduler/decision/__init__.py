"""The core of the scheduler, pure: which node and which devices a pod gets, or why none. No cluster, clock or thread.

`numbering` gives nodes dense slots, `rooms` has their CPU and memory, `books` who holds what (and is the record from
which a plugin is told anew), `standings` remembers fits and scores for each shape of request, `needs` reads a pod's CPU
and memory, `explaining` says in one sentence why nothing fits. `decider` joins them, over plugins that it knows only as
`side`. The scheduler and `partage simulate` decide by this same code.
"""

from partage_scheduler.decision.decider import Decider, Decision
from partage_scheduler.decision.ledger import Books, Holding
from partage_scheduler.decision.needs import needs_of, room_of
from partage_scheduler.decision.reasons import Barred, Explanation
from partage_scheduler.decision.rooms import INSUFFICIENT
from partage_scheduler.decision.side import Side

__all__ = [
    "INSUFFICIENT",
    "Barred",
    "Books",
    "Decider",
    "Decision",
    "Explanation",
    "Holding",
    "Side",
    "needs_of",
    "room_of",
]
