"""What is heard of the cluster goes to those whom it concerns: who counts it, who waits for it. Pure.

Lists and changes may come late, twice or out of order; only news goes on. A pod that was bound is not offered again by
what was said before its binding.

`intake` has a sink for each kind: `pods` for pods, `others` for all other kinds.
"""

from partage_scheduler.intake.intake import Intake

__all__ = ["Intake"]
