"""The conformance tests of container runtimes, critest 1.36: their images, their run, and what their results mean.

straight = Critest(program, socket, work_folder, inside=machine.way_in)
wrong = judge(run(straight, seed=1, say=print), exemptions(), probe(runc))
"""

from __future__ import annotations

from rig.critest.conditions import probe
from rig.critest.exempting import Exemption, exemptions
from rig.critest.images import images
from rig.critest.judging import judge
from rig.critest.results import Outcome, Result, Run
from rig.critest.running import EVERYTHING, Critest, Selection, run

__all__ = [
    "EVERYTHING",
    "Critest",
    "Exemption",
    "Outcome",
    "Result",
    "Run",
    "Selection",
    "exemptions",
    "images",
    "judge",
    "probe",
    "run",
]
