"""The policy simulator: simulated processes and a simulated card drive the broker's own arbiter in simulated time.

    figures = run(Case(containers=(Container(300, flood(MS)), Container(700, flood(MS)))))

Pure and deterministic: random numbers come from a seed. A process behaves as with the library: a gate before each
launch, a window of work in flight, a helper that reports when work is done.
"""

from __future__ import annotations

from support.lease_simulation.cases import Case, Container, Trouble
from support.lease_simulation.figures import Figures
from support.lease_simulation.world import run

__all__ = ["Case", "Container", "Figures", "Trouble", "run"]
