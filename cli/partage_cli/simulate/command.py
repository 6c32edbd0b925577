"""The command line of ``partage simulate``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from partage_cli.main import SUBCOMMANDS
from partage_cli.simulate.plot import as_svg
from partage_cli.simulate.shown import as_json, as_table
from partage_cli.simulation import Job, Point, Protocol, ReplayResult, Workload, replay_all, summarised
from partage_cli.simulation.policies import DEFAULT, decider_with
from partage_cli.simulation.snapshots import read_snapshot
from partage_cli.simulation.synthetic import synthetic
from partage_cli.simulation.traces import read_trace

_FIRST_SEED: Final = 42
"""First seed of the published experiments."""
_FILE: Final = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


class ReplayInput(NamedTuple):
    """The workload to replay, and the present state of the cluster that it comes from."""

    workload: Workload
    now: Point | None = None


@click.command(
    name="simulate",
    short_help=SUBCOMMANDS["simulate"].summary,
    epilog="""\b
Examples:
  partage simulate --synthetic 200
  partage simulate --nodes nodes.csv --pods pods.csv --policy fgd --policy fgd+ --seeds 10
  kubectl get nodes,pods -A -o json > now.json && partage simulate --snapshot now.json --plot now.svg
""",
)
@click.option("--nodes", type=_FILE, help="A trace's nodes, CSV; with --pods.")
@click.option("--pods", type=_FILE, help="A trace's pods, CSV.")
@click.option("--snapshot", type=_FILE, help="A live cluster, as `kubectl get nodes,pods -A -o json` prints it.")
@click.option("--synthetic", "made_up", type=click.IntRange(1, 100_000), metavar="N", help="Make up N nodes and pods.")
@click.option("--policy", "policies", multiple=True, metavar="P", help="May be repeated.  [default: all that compare]")
@click.option("--seeds", type=click.IntRange(1, 1000), default=3, show_default=True, help="Orders of arrival to try.")
@click.option(
    "--arrivals",
    type=click.IntRange(10, 1000),
    default=130,
    show_default=True,
    metavar="PERCENT",
    help="Pods arrive, and then again, until they ask for so much of all cards.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Draw the curves.")
@click.option("--processes", type=click.IntRange(1, 256), help="Replays at once.  [default: one for each core]")
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    *,
    nodes: Path | None,
    pods: Path | None,
    snapshot: Path | None,
    made_up: int | None,
    policies: tuple[str, ...],
    seeds: int,
    arrivals: int,
    output: str,
    plot: Path | None,
    processes: int | None,
) -> None:
    """Replay pods on a fleet with each policy, and compare how much of its cards they get.

    The scheduler's own code decides; no cluster is touched. Pods arrive in an order that a seed decides and never
    leave. docs/simulate.md says what the figures mean.
    """
    chosen = tuple(dict.fromkeys(policies)) or DEFAULT
    for policy in chosen:
        decider_with(policy)  # an unknown policy fails before anything is read
    source = _source(nodes, pods, snapshot, made_up)
    jobs = [Job(policy, _FIRST_SEED + number) for policy in chosen for number in range(seeds)]
    runs = _replayed(source.workload, jobs, Protocol(arrivals_percent=arrivals), processes or os.cpu_count() or 1)
    summaries = summarised(runs)
    shown = as_json if output == "json" else as_table
    click.echo(shown(source.workload, summaries, source.now), nl=False)
    if plot is not None:  # last, so that a full disk does not lose the figures
        plot.write_text(as_svg(source.workload, summaries), encoding="utf-8")


def _source(nodes: Path | None, pods: Path | None, snapshot: Path | None, made_up: int | None) -> ReplayInput:
    """The one source that the options name."""
    named = [nodes is not None or pods is not None, snapshot is not None, made_up is not None]
    if sum(named) != 1:
        raise click.UsageError("say what to replay, in one way: --nodes with --pods, --snapshot, or --synthetic")
    if snapshot is not None:
        _, side = decider_with(DEFAULT[0])
        read = read_snapshot(snapshot, side)
        for note in read.notes:
            click.echo(note, err=True)
        return ReplayInput(read.workload, read.now)
    if made_up is not None:
        return ReplayInput(synthetic(made_up))
    if nodes is None or pods is None:
        raise click.UsageError(f"a trace has two files; {'--nodes' if nodes is None else '--pods'} is missing")
    return ReplayInput(read_trace(nodes, pods))


def _replayed(workload: Workload, jobs: Sequence[Job], protocol: Protocol, processes: int) -> list[ReplayResult]:
    """Run all jobs, with a line on stderr for each finished one."""
    done = 0

    def tell(run: ReplayResult) -> None:
        nonlocal done
        done += 1
        click.echo(f"{done}/{len(jobs)}: {run.policy}, seed {run.seed}", err=True)

    return replay_all(workload, jobs, protocol, processes=processes, on_done=tell)
