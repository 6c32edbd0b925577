"""Replays in several processes: equal to one process, and no process is left in any case."""

from __future__ import annotations

from multiprocessing import active_children, resource_tracker

import pytest
from msgspec.structs import replace

from partage_cli.simulation import Job, Protocol, ReplayResult, Workload, replay_all, summarised
from partage_cli.simulation.results import Mean
from partage_cli.simulation.runs import ReplayEnded
from partage_cli.simulation.synthetic import synthetic
from partage_cli.simulation.workloads import request_of
from partage_plugins.api import Resources
from partage_plugins.errors import Refused

SMALL = synthetic(4, seed=1)
JOBS = [Job(policy, seed) for policy in ("binpack", "spread") for seed in (1, 2)]


@pytest.fixture(scope="module", autouse=True)
def tracker() -> None:
    """Python starts one tracker for all pools and keeps it and its pipe to the end: not a test's leak."""
    resource_tracker.ensure_running()


def replayed(processes: int, jobs: list[Job] = JOBS, told: list[ReplayResult] | None = None) -> list[ReplayResult]:
    heard = told if told is not None else []
    return replay_all(SMALL, jobs, Protocol(arrivals_percent=100), processes=processes, on_done=heard.append)


def test_runs_come_in_the_order_of_the_jobs() -> None:
    assert [(run.policy, run.seed) for run in replayed(1)] == [(job.policy, job.seed) for job in JOBS]


def test_a_summary_is_the_mean_over_seeds() -> None:
    runs = replayed(1)
    first, second = summarised(runs)
    assert (first.policy, second.policy, first.seeds) == ("binpack", "spread", (1, 2))
    finals = [run.points[-1].allocated for run in runs[:2]]
    assert first.points[-1].allocated == Mean(sum(finals) / 2, abs(finals[0] - finals[1]) / 2)
    assert first.at(7) is None


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        (replace(SMALL, nodes=()), "no node has a card"),
        (replace(SMALL, requests=(request_of(Resources(cpu_milli=1), None),)), "no pod asks for a share of a card"),
    ],
)
def test_a_workload_of_which_nothing_can_be_told_is_refused(workload: Workload, why: str) -> None:
    with pytest.raises(Refused, match=why):
        replay_all(workload, JOBS, Protocol(), processes=1, on_done=print)


@pytest.mark.slow
def test_several_processes_come_to_what_one_comes_to() -> None:
    told: list[ReplayResult] = []
    assert replayed(2, told=told) == replayed(1)
    assert sorted(map(repr, told)) == sorted(map(repr, replayed(1)))


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_replay_in_one_sentence() -> None:
    def kill(_: ReplayResult) -> None:
        for child in active_children():
            child.kill()

    many = [Job("binpack", seed) for seed in range(50)]
    with pytest.raises(ReplayEnded, match="is there memory enough"):
        replay_all(SMALL, many, Protocol(), processes=2, on_done=kill)
    assert active_children() == []


@pytest.mark.slow
def test_a_policy_that_is_none_ends_the_replay_with_its_own_words() -> None:
    with pytest.raises(Refused, match="policy 'bin' is not known"):
        replayed(2, [Job("bin", 1), Job("binpack", 1)])
    assert active_children() == []
