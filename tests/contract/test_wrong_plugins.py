"""The conformance kit finds what is wrong: some sixty plugins with one fault each, and none with the right one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from contract.wrong.living import PIDS
from partage_plugins.testing import Limits, Report, Subject, run
from partage_plugins.testing.catalogue import checks_of
from partage_plugins.testing.examples import inventory, pod
from support.procfs import lives

pytestmark = pytest.mark.slow

BOARDS = "fpga.example.com/boards"
SCHEDULER, NODE = "partage_fpga_template.scheduler:FpgaScheduler", "partage_fpga_template.node:FpgaNode"
RIGHT = "the right one"
DEADLY = (
    *("answering:ReturnsTwice", "answering:ClosesFiles", "answering:WritesToFiles"),
    *("answering:ExitsInScores", "counting:CrashesInTake"),
)
"""Of these all checks are run, as what one does to the process meets the others."""
PATIENT = Limits(call_s=30.0, memory_bytes=512 << 20)
HANGING = {"answering:HoldsTheInterpreter": 1.0, "living:HangsInStopping": 1.0, "answering:HangsAgainstSignals": 0.25}
"""Deadlines in seconds of those that never end; no other plugin is judged by a clock."""


class Wrong(NamedTuple):
    """A plugin, the check that must fail, and a piece of the reason."""

    plugin: str
    check: str
    why: str


OF_SCHEDULER = (
    Wrong("loading:ClaimsAKindUnsaid", "loads", "it owns kind boards; the subject says fpga"),
    Wrong("loading:DeclaresLiquidRequests", "declares_its_kind", "LiquidRequest of kind fpga is not frozen"),
    Wrong(
        "loading:AnswersForForeignPods", "leaves_other_pods_alone", "reads ['fpga'] from a pod that asks for nothing"
    ),
    Wrong("loading:RefusesForeignPods", "leaves_other_pods_alone", "refuses a pod that does not ask for its kind"),
    Wrong("loading:FailsOnGarbage", "refuses_garbage_in_words", "raised ValueError: invalid literal for int()"),
    Wrong("loading:AcceptsGarbage", "refuses_garbage_in_words", "returned a request for fpga with a wrong value"),
    Wrong("loading:ReadsDifferently", "reads_its_pods", "reads pod train differently twice"),
    Wrong("loading:ChangesThePod", "changes_no_input", "partage_requests changed the pod"),
    Wrong("answering:HoldsTheInterpreter", "fits_somewhere", "plugin fpga hung in partage_fits for more than 1 s"),
    Wrong("answering:HangsAgainstSignals", "fits_somewhere", "gave no result for 5 s, last seen in partage_fits"),
    Wrong("answering:ClosesFiles", "fits_somewhere", "was not run: plugin fpga exited with 1 outside of any hook"),
    Wrong("answering:WritesToFiles", "fits_somewhere", "outside of any hook"),
    Wrong("answering:ExitsInScores", "scores_are_finite", "plugin fpga exited with 9 in partage_scores"),
    Wrong("answering:ExitsInScores", "answers_for_each_node_alone", "plugin fpga ended this process in partage_scores"),
    Wrong("answering:StartsAProcess", "starts_no_process", "left a process running"),
    Wrong("answering:ScoresWithoutNumbers", "scores_are_finite", "gave a score that is not finite"),
    Wrong("answering:ScoresTheBatch", "answers_for_each_node_alone", "partage_scores depends on the other nodes"),
    Wrong("answering:ScoresAnew", "answers_the_same_twice", "partage_scores answers differently the second time"),
    Wrong("answering:UsesAnArrayTwice", "answers_stay_as_given", "partage_fits changes an answer that it gave before"),
    Wrong("answering:ForgetsTheFirstNode", "answers_for_any_number_of_nodes", "partage_fits: raised IndexError"),
    Wrong("answering:ChangesTheRequest", "changes_no_input", "partage_shape changed the request"),
    Wrong("answering:ChangesTheInventory", "changes_no_input", "partage_node_added changed the inventory"),
    Wrong("answering:ShapeOfThePod", "shape_is_of_the_request_alone", "to two pods that ask for the same"),
    Wrong("answering:ShapeWithoutHash", "shape_is_of_the_request_alone", "returned list, which cannot be hashed"),
    Wrong("answering:OneShapeForAll", "equal_shapes_get_equal_answers", "equal for two requests whose fits"),
    Wrong("answering:FitsWithoutItsKind", "fits_nowhere_without_its_kind", "a node that has nothing of its kind"),
    Wrong(
        "answering:VetoesOtherPods", "fits_everywhere_for_other_pods", "does not ask for its kind: ['no FPGA boards']"
    ),
    Wrong("counting:FitsButRefuses", "fills_up", "partage_fits says yes for node-0, partage_allocate no"),
    Wrong("counting:AllocatesWithState", "allocating_changes_nothing", "partage_allocate gives"),
    Wrong("counting:GrantsToTheFirstOnly", "allocates_where_it_fits", "allowed: exactly the containers that ask"),
    Wrong("counting:GrantsWithoutLooking", "refuses_where_it_does_not_fit", "on a node that has nothing of its kind"),
    Wrong("counting:TakesNothing", "fills_up", "after 10000 pods there is still room; does partage_take count them?"),
    Wrong("counting:TakesNothing", "gives_no_whole_device_twice", 'two pods hold {"board":"fpga0"}'),
    Wrong("counting:CrashesInTake", "fills_up", "plugin fpga ended this process in partage_take"),
    Wrong("counting:CrashesInTake", "changes_no_input", "plugin fpga was killed by SIGSEGV in partage_take"),
    Wrong("counting:ForgetsGiveBack", "giving_back_restores", "after all was given back in the same order, the fits"),
    Wrong("counting:GivesBackTheLastOnly", "replay_restores", "a new instance told of the same nodes and allocations"),
    Wrong("counting:KeepsRemovedNodes", "forgets_removed_nodes", "with other nodes in the slots of removed ones"),
    Wrong("counting:SharesItsState", "instances_share_nothing", "after a new instance was told of nodes"),
    Wrong("counting:VetoesByRoom", "leaves_rooms_to_the_host", "partage_fits says no where only CPU and memory are"),
    Wrong("counting:LosesCountOfRooms", "counts_whenever_told_of_rooms", "told of rooms after allocations"),
    Wrong("counting:KeepsRoomsOfRemovedNodes", "forgets_rooms_of_removed_nodes", "after its node was removed"),
    Wrong("counting:CountsEachUseOfABudget", "counts_a_budget_once", "after a budget was taken that 3 containers use"),
    Wrong("counting:GrantsToEachUserOfABudget", "counts_a_budget_once", "allowed: exactly the containers that ask"),
    Wrong("counting:CountsAllKinds", "counts_beside_other_kinds", "after allocations that also hold another kind's"),
)
OF_NODE = (
    Wrong("living:MisspeltNodeHook", "node_side_loads", "partage_adjusted: there is no such hook on this side"),
    Wrong("living:StartsOnce", "starts_again", "partage_started: raised FileExistsError"),
    Wrong("living:HangsInStopping", "starts_and_stops", "plugin fpga hung in partage_stopping for more than 1 s"),
    Wrong("living:LeavesAProcess", "stops_without_a_trace", "it left a process running"),
    Wrong("living:LeavesAThread", "stops_without_a_trace", "it left a thread running: board-watcher"),
    Wrong("living:DiscoversAnew", "discovers_the_same_twice", "and nothing has changed"),
    Wrong("living:DiscoversWrongValues", "discovers_what_can_be_written", "returned a wrong value"),
    Wrong("living:SamplesTwice", "samples_are_gauges", "gives a gauge twice"),
    Wrong("living:RemovesTheKnownOnly", "is_removed_at_any_time", "partage_removed: raised KeyError"),
    Wrong("adjusting:EnforcesNothing", "enforces_what_grants_promise", "does not enforce: memory, share of fpga"),
    Wrong("adjusting:PromisesByRaising", "enforces_what_grants_promise", "promises: raised LookupError: no such board"),
    Wrong("adjusting:AdjustsAnew", "adjusts_the_same_twice", "answers differently for the same container"),
    Wrong("adjusting:AdjustsByProcess", "adjusts_the_same_twice", "of a new instance answers differently"),
    Wrong(
        "adjusting:AdjustsEverything", "leaves_other_containers_alone", "sets env FPGA_BOARDS where its kind was not"
    ),
    Wrong("adjusting:AcceptsUnknownBoards", "refuses_unknown_devices", "which its inventory does not have"),
    Wrong("adjusting:AcceptsWithoutAPart", "refuses_where_its_kind_is_missing", "where nothing of it exists"),
    Wrong("adjusting:ChangesTheContainer", "adjusting_changes_no_input", "partage_adjust changed the container"),
    Wrong("adjusting:EatsMemory", "adjusts_the_same_twice", "plugin fpga ran out of memory: in partage_adjust"),
    Wrong("adjusting:AnswersTooMuch", "works_in_the_plugin_host", "sent a frame of"),
    Wrong(
        "adjusting:DiesInTheHostOnly", "works_in_the_plugin_host", "partage_adjust: its process was killed by SIGABRT"
    ),
)
OF_BOTH = (Wrong("adjusting:OwnsAnotherKind", "both_sides_own_one_kind", "the grant of kind fpga has"),)


def subject(*, scheduler: str | None = None, node: str | None = None) -> Subject:
    """The examples of the template, for a plugin that is derived from it."""
    return Subject(
        name="fpga",
        kind="fpga",
        scheduler=scheduler,
        node=node,
        pods=(pod({BOARDS: "1"}, annotations={"note": "1"}), pod({BOARDS: "2"}, {BOARDS: "1"}, name="large")),
        inventories=(
            inventory(fpga={"boards": [f"fpga{number}" for number in range(10)]}),
            inventory(fpga={"boards": ["fpga0", "fpga1", "fpga7"]}),
            inventory(),
        ),
        grants={"fpga": '[{"board":"fpga0"},{"board":"fpga7"}]'},
        files={"dev/fpga0": "", "dev/fpga1": "", "dev/fpga7": ""},
        limits=PATIENT,
    )


def all_subjects() -> dict[str, Subject]:
    """What is checked, by plugin."""
    subjects = {RIGHT: subject(scheduler=SCHEDULER, node=NODE)}
    subjects |= {wrong.plugin: subject(scheduler=f"contract.wrong.{wrong.plugin}") for wrong in OF_SCHEDULER}
    subjects |= {wrong.plugin: subject(node=f"contract.wrong.{wrong.plugin}") for wrong in OF_NODE}
    subjects |= {wrong.plugin: subject(scheduler=SCHEDULER, node=f"contract.wrong.{wrong.plugin}") for wrong in OF_BOTH}
    subjects |= {plugin: subject(scheduler=f"contract.wrong.{plugin}") for plugin in DEADLY}
    for plugin, call_s in HANGING.items():
        subjects[plugin] = replace(subjects[plugin], limits=replace(PATIENT, call_s=call_s))
    return subjects


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The kit's reports, made several at once before the first test: of a wrong plugin the checks that it must fail."""
    subjects = all_subjects()
    checks: dict[str, list[str]] = {plugin: [] for plugin in subjects}
    for wrong in (*OF_SCHEDULER, *OF_NODE, *OF_BOTH):
        if wrong.plugin not in DEADLY:
            checks[wrong.plugin].append(wrong.check)
    # More than there are processors: some of them hang, which costs nothing but time.
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) + 2) as pool:
        return dict(zip(subjects, pool.map(run, subjects.values(), checks.values()), strict=True))


def test_the_right_plugin_fails_no_check(reports: dict[str, Report]) -> None:
    report = reports[RIGHT]
    assert not report.failed
    assert len(report.results) > 45


@pytest.mark.parametrize(
    "wrong", [*OF_SCHEDULER, *OF_NODE, *OF_BOTH], ids=lambda wrong: f"{wrong.plugin}-{wrong.check}"
)
def test_a_wrong_plugin_fails_for_the_right_reason(wrong: Wrong, reports: dict[str, Report]) -> None:
    result = reports[wrong.plugin].of(wrong.check)
    assert not result.passed
    assert wrong.why in result.why, result.trace


@pytest.mark.parametrize("plugin", DEADLY)
def test_each_check_has_one_result_whatever_a_plugin_does(plugin: str, reports: dict[str, Report]) -> None:
    applying = checks_of(subject(scheduler=SCHEDULER))
    assert [result.check for result in reports[plugin].results] == list(applying)


def test_what_a_dying_plugin_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv(PIDS, str(pids))
    report = run(subject(node="contract.wrong.living:ForksAndCrashes"))
    assert "plugin fpga was killed by SIGABRT in partage_started" in report.of("starts_and_stops").why
    started = [int(line) for line in pids.read_text().splitlines()]
    assert started
    assert not [pid for pid in started if lives(pid)]
