"""Builds the programs of the rig once: `ensure()` returns their paths and builds what is missing.

`catalogue` lists programs and versions, `provision` decides what to do in which order, `cache` lets several builders
share one cache, `golang`, `debian` and `archive` make each kind, `steps` runs a step and shows its progress.
"""

from __future__ import annotations

from rig.programs.provision import Programs, ensure

__all__ = ["Programs", "ensure"]
