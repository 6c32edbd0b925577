"""Card reservations: a pod of ours takes one card from kubelet while other pods wait for it, and is deleted later.

All state is in these pods, in inventories, which name the reservation of each card, and in allocations. Pure: `pods`
defines such a pod, `demand` decides how many are wanted on which nodes, `upkeep` which of them are deleted.
"""

from partage_scheduler.reservation.demand import wants
from partage_scheduler.reservation.pods import Reservation, body_of
from partage_scheduler.reservation.upkeep import Upkeep

__all__ = ["Reservation", "Upkeep", "body_of", "wants"]
