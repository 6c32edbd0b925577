"""Packing quality of policies: the published experiment on its own traces, run by the scheduler's code.

The traces are not part of the project. They are looked up in the folder named by PARTAGE_TRACES, else in
`../shared/data` beside the checkout: `openb_node_list_gpu_node.csv`, pod lists `openb_pod_list_*.csv`, and the
published results, `fgd_published_alloc_ratio.csv`. Without them made-up fleets with the same statistics are used, as
the output says; then nothing is compared with published results.
"""

from __future__ import annotations

import csv
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from bench.harness import Bench
from partage_cli.simulation import Job, Protocol, ReplayResult, Summary, Workload, replay_all, summarised
from partage_cli.simulation.synthetic import ALL_SHARED, CHOOSY, CPU_HEAVY, MIXED, synthetic
from partage_cli.simulation.traces import read_trace

SEEDS: Final = range(42, 52)
POLICIES: Final = ("fgd", "fgd+")
NODES_FILE: Final = "openb_node_list_gpu_node.csv"
PUBLISHED_FILE: Final = "fgd_published_alloc_ratio.csv"
TOLERANCE: Final = 0.3
WORSE_BY: Final = 0.2
CPU_SCARCE: Final = "cpu250"
BETTER_BY: Final = 1.0
SATURATED: Final = 100
"""Percent of arrivals; up to that point all arrivals should fit, and no policy can be better."""
SYNTHETIC_NODES: Final = 300


class Plan(NamedTuple):
    seeds: tuple[int, ...]
    marks: tuple[int, ...]
    """Arrivals in percent at which to measure: first while there is room, then when there is none."""
    lists: int


FULL: Final = Plan(tuple(SEEDS), (80, 90, 100, 130), sys.maxsize)
SMOKE: Final = Plan((SEEDS[0],), (5, 10), 1)


def folder() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("PARTAGE_TRACES", beside))


def workloads() -> dict[str, Workload]:
    nodes, lists = folder() / NODES_FILE, sorted(folder().glob("openb_pod_list_*.csv"))
    if nodes.is_file() and lists:
        named = {path.stem.removeprefix("openb_pod_list_"): path for path in lists}
        return {name: read_trace(nodes, named[name]) for name in sorted(named, key=lambda name: name != "default")}
    sys.stdout.write(f"no traces in {folder()}: made-up fleets of {SYNTHETIC_NODES} nodes stand in\n\n")
    mixes = (MIXED, CPU_HEAVY, CHOOSY, ALL_SHARED)
    return {f"synthetic {mix.name}": synthetic(SYNTHETIC_NODES, mix=mix) for mix in mixes}


def published() -> Mapping[str, float]:
    """By list, the published mean allocation of fragmentation gradient descent when 130 % had arrived."""
    path = folder() / PUBLISHED_FILE
    found: defaultdict[str, list[float]] = defaultdict(list)
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["sc_policy"].endswith("FGD"):
                    found[row["workload"].removeprefix("openb_pod_list_")].append(float(row["130"]))
    return {name: fmean(values) for name, values in found.items()}


def tell(run: ReplayResult) -> None:
    sys.stderr.write(f"{run.policy} seed {run.seed}: {run.points[-1].allocated:.2f} %\n")


def replayed(bench: Bench, name: str, workload: Workload, plan: Plan) -> dict[str, Summary]:
    jobs = [Job(policy, seed) for policy in POLICIES for seed in plan.seeds]
    protocol = Protocol(arrivals_percent=plan.marks[-1])
    runs = replay_all(workload, jobs, protocol, processes=os.cpu_count() or 1, on_done=tell)
    bench.engaged(f"{name}: pods are placed", all(run.pods > run.unplaced for run in runs))
    bench.engaged(f"{name}: the fleet is full", plan is SMOKE or all(run.unplaced for run in runs))
    return {summary.policy: summary for summary in summarised(runs)}


def allocated(summary: Summary, mark: int) -> float:
    point = summary.at(mark)
    if point is None:
        raise SystemExit(f"bench packing: nothing is known of {mark} % arrivals")
    return point.allocated.mean


def judge(bench: Bench, name: str, summaries: Mapping[str, Summary], plan: Plan) -> None:
    """Compares our policy with the published one, in the same run."""
    for mark in plan.marks:
        reference, ours = (allocated(summaries[policy], mark) for policy in POLICIES)
        bench.figure(f"{name}: fgd at {mark} %", reference)
        bench.figure(f"{name}: fgd+ at {mark} %", ours)
        bench.bar(f"{name}: fgd+ over fgd at {mark} %", ours - reference, at_least=-WORSE_BY, unit="points")
        if name == CPU_SCARCE and mark >= SATURATED:
            bench.bar(f"{name}: fgd+ is better at {mark} %", ours - reference, at_least=BETTER_BY, unit="points")


def judge_reference(bench: Bench, name: str, summary: Summary, known: Mapping[str, float]) -> None:
    """Our `fgd` must reproduce the results published under that name."""
    if name in known:
        off = allocated(summary, FULL.marks[-1]) - known[name]
        bench.figure(f"{name}: published fgd at {FULL.marks[-1]} %", known[name])
        bench.bar(f"{name}: fgd beside what was published", abs(off), at_most=TOLERANCE, unit="points")


def main() -> int:
    bench = Bench.from_argv("packing", libraries=["numpy", "msgspec"])
    plan, known = SMOKE if bench.smoke else FULL, published()
    for name, workload in list(workloads().items())[: plan.lists]:
        summaries = replayed(bench, name, workload, plan)
        judge(bench, name, summaries, plan)
        if not bench.smoke:
            judge_reference(bench, name, summaries["fgd"], known)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
