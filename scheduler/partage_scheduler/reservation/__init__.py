"""Cards change hands one by one: a pod of ours takes one from kubelet while pods wait, and leaves it in the end.

All state is in these pods, in inventories, which name them beside their cards, and in allocations. Pure: `pods` is what
such a pod is, `demand` says on which nodes how many are wanted, `upkeep` which of them leave.
"""

from partage_scheduler.reservation.demand import Demand
from partage_scheduler.reservation.pods import Reservation, body_of
from partage_scheduler.reservation.upkeep import Upkeep

__all__ = ["Demand", "Reservation", "Upkeep", "body_of"]
