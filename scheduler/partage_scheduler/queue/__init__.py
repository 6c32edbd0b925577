"""The scheduling queue: which pod is next. Pure.

`queue` has the states and their transitions, `units` what is queued as one (a pod or a gang), `lines` the order.
"""

from partage_scheduler.queue.queue import Queue, QueueSettings
from partage_scheduler.queue.units import Waiting

__all__ = ["Queue", "QueueSettings", "Waiting"]
