"""Which pod is next, pure.

`queue` knows the places and the ways between them, `units` what is moved as one (a pod or a gang), `lines` who is
first.
"""

from partage_scheduler.queue.queue import Queue, QueueSettings
from partage_scheduler.queue.units import Waiting

__all__ = ["Queue", "QueueSettings", "Waiting"]
