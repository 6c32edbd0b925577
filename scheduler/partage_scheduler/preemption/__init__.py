"""Who is sent away for a pod of a higher priority that fits nowhere. Pure.

`VictimFinder.victims(pod, now)` looks at all nodes, `victims_on(pod, node, now, chosen=…)` at one that somebody else
proposes. `importance` orders pods and costs, `budgets` knows whose end is one too many, `guessing` finds nodes that may
do, `choosing` looks at them properly, and
`preemption` says what is to be done for one pod.
"""

from partage_scheduler.preemption.budgets import Budgets
from partage_scheduler.preemption.importance import Cost
from partage_scheduler.preemption.preemption import Considered, Preemption
from partage_scheduler.preemption.victims import NoVictims, VictimFinder, Victims

__all__ = ["Budgets", "Considered", "Cost", "NoVictims", "Preemption", "VictimFinder", "Victims"]
