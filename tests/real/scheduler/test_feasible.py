"""For every pod and node we agree with the real kube-scheduler on whether the pod may go there.

`make soak-rounds` compares many more.
"""

from __future__ import annotations

import os
from pathlib import Path

from rig.control.plane import control_plane
from support.feasible.comparing import WAITING_EACH, Comparison, settings_for
from support.feasible.recording import recording

MORE = int(os.environ.get("TEST_CLUSTERS", "0"))
CLUSTERS = range(MORE) if MORE else (1, 5, 6)
"""Seeds; the few include those on which the two once differed."""


def test_pods_may_go_where_kube_scheduler_lets_them_go(tmp_path: Path) -> None:
    with recording() as recorder, control_plane(settings_for(recorder)) as control:
        comparison = Comparison(control, recorder, tmp_path)
        comparison.furnish()
        for seed in CLUSTERS:
            comparison.compare(seed)
        comparison.close()
    outcome = comparison.outcome
    assert not outcome.differences, "\n".join(map(str, outcome.differences))
    assert outcome.pairs == len(CLUSTERS) * WAITING_EACH
    assert outcome.telling > outcome.pairs / 3, "most pods fit everywhere or nowhere, which says little"
    assert len(outcome.reasons) >= 15
