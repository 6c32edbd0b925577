"""What users are told of their pods: events, and the condition PodScheduled where it is not so. All of it may be late.

`outbox` and `pace` decide what is due and are pure; `events` and `conditions` write. A binding is worth more than any
of it: what the API server has no time for waits, the latest word wins, and what is too much is dropped and counted.
"""

from partage_scheduler.telling.conditions import Conditions, Unplaced
from partage_scheduler.telling.events import Events
from partage_scheduler.telling.outbox import Outbox
from partage_scheduler.telling.pace import Pace

__all__ = ["Conditions", "Events", "Outbox", "Pace", "Unplaced"]
