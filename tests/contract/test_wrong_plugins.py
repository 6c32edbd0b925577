"""The conformance kit finds faults: some sixty plugins with one fault each, and none in the correct one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from contract.wrong.living import PIDS
from partage_plugins.testing import Limits, Subject
from partage_plugins.testing.examples import inventory, pod
from partage_plugins.testing.suite import checks_of
from partage_plugins.testing.trial import failure
from support.procfs import lives

pytestmark = pytest.mark.slow

BOARDS = "fpga.example.com/boards"
SCHEDULER, NODE = "partage_fpga_template.scheduler:FpgaScheduler", "partage_fpga_template.node:FpgaNode"
PATIENT = Limits(call_s=30.0, memory_bytes=512 << 20)
HANGING = {"answering:HoldsTheInterpreter": 1.0, "living:HangsInStopping": 1.0, "answering:HangsAgainstSignals": 0.25}
"""Deadlines in seconds of plugins that never return; no other plugin is judged by a clock."""


class Wrong(NamedTuple):
    """A plugin, the check that must fail, and a part of the reason."""

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
    Wrong("answering:ExitsInScores", "scores_are_finite", "plugin fpga exited with 9 in partage_scores"),
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
    Wrong("counting:CrashesInTake", "fills_up", "plugin fpga was killed by SIGSEGV in partage_take"),
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


def subject(*, scheduler: str | None = None, node: str | None = None) -> Subject:
    """The template's examples, for a plugin derived from it."""
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


def failure_of(check: str, of: Subject) -> str:
    return failure(checks_of(of)[check], of)


def check_fails(wrong: Wrong, of: Subject) -> None:
    call_s = HANGING.get(wrong.plugin, PATIENT.call_s)
    assert wrong.why in failure_of(wrong.check, replace(of, limits=replace(PATIENT, call_s=call_s)))


def named(wrong: Wrong) -> str:
    return f"{wrong.plugin}-{wrong.check}"


@pytest.mark.parametrize("wrong", OF_SCHEDULER, ids=named)
def test_a_wrong_scheduler_side_fails_for_the_right_reason(wrong: Wrong) -> None:
    check_fails(wrong, subject(scheduler=f"contract.wrong.{wrong.plugin}"))


@pytest.mark.parametrize("wrong", OF_NODE, ids=named)
def test_a_wrong_node_side_fails_for_the_right_reason(wrong: Wrong) -> None:
    check_fails(wrong, subject(node=f"contract.wrong.{wrong.plugin}"))


def test_sides_that_do_not_belong_together_fail_for_the_right_reason() -> None:
    other = subject(scheduler=SCHEDULER, node="contract.wrong.adjusting:OwnsAnotherKind")
    assert "the grant of kind fpga has" in failure_of("both_sides_own_one_kind", other)


@pytest.mark.parametrize("plugin", ["ReturnsTwice", "ClosesFiles", "WritesToFiles"])
def test_what_a_plugin_does_to_its_process_reaches_no_other(plugin: str, tmp_path: Path) -> None:
    with (tmp_path / "ours").open("wb"):
        assert not failure_of("fits_somewhere", subject(scheduler=f"contract.wrong.answering:{plugin}"))
    assert (tmp_path / "ours").read_bytes() == b""


def test_what_a_dying_plugin_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv(PIDS, str(pids))
    why = failure_of("starts_and_stops", subject(node="contract.wrong.living:ForksAndCrashes"))
    assert "plugin fpga was killed by SIGABRT in partage_started" in why
    started = [int(line) for line in pids.read_text().splitlines()]
    assert started
    assert not [pid for pid in started if lives(pid)]


def test_what_a_plugin_leaves_in_another_session_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv(PIDS, str(pids))
    assert not failure_of("starts_and_stops", subject(node="contract.wrong.living:LeavesAProcess"))
    assert not [line for line in pids.read_text().splitlines() if lives(int(line))]
