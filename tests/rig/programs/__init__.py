"""Makes the programs of the rig, once: `ensure()` gives their paths and builds what is missing.

`catalogue` says which programs and versions, `provision` what to do in which order, `cache` how several builders share
one cache, `golang`, `debian` and `archive` how each kind is made, `steps` how a step runs and what people see of it.
"""

from __future__ import annotations

from rig.programs.provision import Programs, ensure

__all__ = ["Programs", "ensure"]
