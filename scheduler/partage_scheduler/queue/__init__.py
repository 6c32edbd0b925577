"""The scheduling queue: which pod is next. Pure.

`queue` has the states and their transitions, `groups` what is queued as one (a pod or a gang), `fair_queue` the order.
"""

from partage_scheduler.queue.groups import Waiting
from partage_scheduler.queue.queue import Queue, QueueSettings

__all__ = ["Queue", "QueueSettings", "Waiting"]
