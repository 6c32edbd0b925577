"""Preemption: which pods leave for a pod of a higher priority that fits nowhere. Pure.

`victims` finds them, on all nodes or on one that a caller proposes. `estimate` finds nodes that may suffice,
`importance` orders pods and costs, `suspension` says which victims are suspended instead of deleted, `budgets` knows
how many of a budget's pods may be disrupted, `preemption` decides what is done for one pod.
"""

from partage_scheduler.preemption.budgets import Budgets
from partage_scheduler.preemption.importance import Cost
from partage_scheduler.preemption.preemption import Considered, Preemption
from partage_scheduler.preemption.suspension import Suspension
from partage_scheduler.preemption.victims import NoVictims, VictimFinder, Victims

__all__ = ["Budgets", "Considered", "Cost", "NoVictims", "Preemption", "Suspension", "VictimFinder", "Victims"]
