"""Who is sent away for a pod of a higher priority that fits nowhere. Pure.

`Preempting.victims(pod, now)` looks at all nodes, `victims_on(pod, node, now, chosen=…)` at one that somebody else
proposes. `importance` orders pods and costs, `budgets` knows whose end is one too many, `guessing` finds nodes that may
do, `choosing` looks at them properly, and
`considering` says what is to be done for one pod.
"""

from partage_scheduler.preemption.budgets import Budgets
from partage_scheduler.preemption.importance import Cost
from partage_scheduler.preemption.preemption import Considered, Considering
from partage_scheduler.preemption.victims import Nobody, Preempting, Victims

__all__ = ["Budgets", "Considered", "Considering", "Cost", "Nobody", "Preempting", "Victims"]
