"""The conformance tests of container runtimes, critest 1.36: their images, their runs, and the judgement of results.

straight = Critest(program, socket, work_folder, inside=machine.way_in)
wrong = judge(run(straight, seed=1, say=print), exemptions(), probe(runc))
"""

from __future__ import annotations

from rig.critest.conditions import probe
from rig.critest.exceptions import Exemption, exemptions, judge
from rig.critest.images import images
from rig.critest.results import Outcome, Result, Run
from rig.critest.runs import Critest, run

__all__ = [
    "Critest",
    "Exemption",
    "Outcome",
    "Result",
    "Run",
    "exemptions",
    "images",
    "judge",
    "probe",
    "run",
]
