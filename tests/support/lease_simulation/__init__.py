"""The policy simulator: simulated processes and a simulated card drive the broker's own arbiter in simulated time.

    figures = run(Case(containers=(Container(300, flood(MS)), Container(700, flood(MS)))))

Pure, and the same each time: chance comes from a seed. What a process does is what the library does: a gate before
each launch, a window of work in flight, a helper that says when work is done.
"""

from __future__ import annotations

from support.lease_simulation.cases import Case, Container, Trouble
from support.lease_simulation.figures import Figures
from support.lease_simulation.world import run

__all__ = ["Case", "Container", "Figures", "Trouble", "run"]
