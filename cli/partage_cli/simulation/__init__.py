"""Replays of pods on a fleet of nodes through the scheduler's own code, to compare policies on a workload.

`workloads` defines the input; it comes from `traces` (CSV), from `snapshots` (a live cluster's objects) or from
`synthetic`, which generates it. `typical` finds its most frequent shapes, `measures` counts allocated and fragmented
parts independently of any plugin. `replay` is the protocol of one run, `runs` does many in parallel, `results`
summarises them. `policies` selects the plugins. No cluster is touched.
"""

from partage_cli.simulation.replay import Protocol
from partage_cli.simulation.results import Point, ReplayResult, Summary, summarised
from partage_cli.simulation.runs import Job, replay_all
from partage_cli.simulation.workloads import FleetNode, Workload

__all__ = ["FleetNode", "Job", "Point", "Protocol", "ReplayResult", "Summary", "Workload", "replay_all", "summarised"]
