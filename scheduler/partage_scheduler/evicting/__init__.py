"""Which pods should leave their nodes since their cards are lost, or their node is to rest; and when. Pure.

`troubles` reads it from inventories, `leaving` remembers since when and says what is due.
"""

from partage_scheduler.evicting.leaving import EvictingSettings, Leaving, Notice
from partage_scheduler.evicting.troubles import LOST, PAUSED, Trouble

__all__ = ["LOST", "PAUSED", "EvictingSettings", "Leaving", "Notice", "Trouble"]
