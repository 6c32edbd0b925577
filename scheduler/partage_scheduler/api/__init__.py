"""What asks the API server and writes to it: what is followed, bindings, the Lease, pods' status, events.

A binding comes first: what the API server has no time for waits, the latest word wins, and what is too much is dropped
and counted. `outbox` says what is due, and is pure.
"""

from partage_scheduler.api.events import Events
from partage_scheduler.api.outbox import Outbox, Pace
from partage_scheduler.api.status import StatusWriter, Unplaced

__all__ = ["Events", "Outbox", "Pace", "StatusWriter", "Unplaced"]
