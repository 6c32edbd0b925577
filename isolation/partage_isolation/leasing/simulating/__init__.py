"""The policy simulator: simulated processes and a simulated card drive the broker's own arbiter in simulated time.

    figures = run(Case(containers=(Container(300, flood(MS)), Container(700, flood(MS)))))

Pure, and the same each time: chance comes from a seed. What a process does is what the library does: a gate before
each launch, a window of work in flight, a helper that says when work is done.
"""

from __future__ import annotations

from partage_isolation.leasing.simulating.cases import Case, Container, Trouble
from partage_isolation.leasing.simulating.figures import Figures
from partage_isolation.leasing.simulating.world import run

__all__ = ["Case", "Container", "Figures", "Trouble", "run"]
