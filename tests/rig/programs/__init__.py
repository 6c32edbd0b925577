"""Makes the programs of the rig, once: `ensure()` gives their paths and builds what is missing.

`catalogue` says which programs and versions, `providing` what to do in which order, `caching` how several builders
share one cache, `golang`, `toolchain` and `debian` how each kind is made, `running` and `telling` how a step runs and
what people see meanwhile.
"""

from __future__ import annotations

from rig.programs.programs import Programs
from rig.programs.provision import ensure

__all__ = ["Programs", "ensure"]
