"""Replays of pods on a fleet of nodes through the scheduler's own code: what a policy makes of a workload.

`workloads` is what is replayed; it comes from `traces` (CSV), from `snapshots` (a live cluster's objects) or is
made up by `synthetic`. `typical` are its most frequent shapes, `measuring` counts what is allocated and what is a
fragment, independently of any plugin. `replaying` is the protocol of one run, `running` does many at once, `results`
sums them up. `policies` says which plugins decide. No cluster is touched.
"""

from partage_cli.simulation.replay import Protocol
from partage_cli.simulation.results import Point, ReplayResult, Summary, summarised
from partage_cli.simulation.runs import Job, replay_all
from partage_cli.simulation.workloads import FleetNode, Workload

__all__ = ["FleetNode", "Job", "Point", "Protocol", "ReplayResult", "Summary", "Workload", "replay_all", "summarised"]
