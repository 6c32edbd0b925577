"""Access to the API server: watches, bindings, the Lease, pods' status, events.

Bindings come first: other writes wait while the API server is busy, only the latest one about an object is kept, and
excess ones are dropped and counted. `outbox` decides what is due, and is pure.
"""

from partage_scheduler.api.events import Events
from partage_scheduler.api.outbox import Outbox, Pace
from partage_scheduler.api.status import StatusWriter, Unplaced

__all__ = ["Events", "Outbox", "Pace", "StatusWriter", "Unplaced"]
