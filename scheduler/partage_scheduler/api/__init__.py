"""What users are told of their pods: events, and the condition PodScheduled where it is not so. All of it may be late.

`outbox` and `pace` decide what is due and are pure; `events` and `conditions` write. A binding is worth more than any
of it: what the API server has no time for waits, the latest word wins, and what is too much is dropped and counted.
"""

from partage_scheduler.api.events import Events
from partage_scheduler.api.outbox import Outbox, Pace
from partage_scheduler.api.status import StatusWriter, Unplaced

__all__ = ["Events", "Outbox", "Pace", "StatusWriter", "Unplaced"]
