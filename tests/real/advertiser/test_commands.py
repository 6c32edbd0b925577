"""The command's one-shot modes (publish, show, withdraw) and its refusals."""

from __future__ import annotations

import json

import pytest

from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.places import PAUSE_FOLDER
from rig.errors import Refused
from support.advertiser_stage import CHILD, AdvertiserStage
from support.audit import Audit
from support.simgpu_stage import UUIDS

FAILED, BAD_CONFIGURATION = 1, 78


def ids(text: str | None) -> list[str]:
    return [card["id"] for card in json.loads(text or "")["kinds"]["gpu"]["cards"]]


def outcomes(lines: str) -> list[str]:
    return [line.rpartition(": ")[2] for line in lines.splitlines()]


def test_once_tells_and_prune_takes_back_and_a_dry_run_writes_nothing(stage: AdvertiserStage, audit: Audit) -> None:
    dry = stage.once("--dry-run")
    assert (dry.returncode, ids(dry.stdout), outcomes(dry.stderr)) == (0, list(UUIDS), ["would be written"] * 2)
    assert (stage.told_text(), stage.written_text()) == (None, None)
    assert not audit.writes()
    stage.tell_driver("nvml delay 50")  # it waits for a slow driver
    first = stage.once("--once")
    stage.tell_driver("nvml delay 0")
    assert (first.returncode, first.stdout, outcomes(first.stderr)) == (0, "", ["written"] * 2)
    text = stage.told_text()
    assert (ids(text), stage.written_text()) == (list(UUIDS), text)
    second = stage.once("--once")
    assert (second.returncode, outcomes(second.stderr)) == (0, ["says so already"] * 2)
    assert audit.writes() == {("patch", "nodes"): 1}
    assert not stage.processes(CHILD)
    dry = stage.once("prune", "--dry-run")
    assert f"annotation {ANNOTATION} of node {stage.name}: would be removed" in dry.stderr
    assert (dry.returncode, stage.told_text(), stage.written_text()) == (0, text, text)


def test_nothing_is_done_beside_an_advertiser_that_runs_and_prune_takes_all_of_it_back(stage: AdvertiserStage) -> None:
    component = stage.start()
    stage.wait_figure('partage_advertiser_heartbeats_total{outcome="done"}', 1)
    for words in (("prune",), ("--once",), ("--log-format", "text")):
        done = stage.once(*words)
        assert done.returncode == FAILED
        (line,) = [each for each in (done.stdout + done.stderr).splitlines() if "another" in each]
        assert "another advertiser of this node holds" in line
        assert "Traceback" not in done.stderr
    assert stage.told_text() == stage.written_text()
    component.stop()
    stage.machine.write(f"/{PAUSE_FOLDER}/driver-upgrade", "an upgrade\n")
    done = stage.once("prune")
    assert (done.returncode, outcomes(done.stderr)) == (0, ["removed"] * 3)
    assert (stage.told_text(), stage.written_text()) == (None, None)
    assert not stage.machine.path(f"/{PAUSE_FOLDER}/driver-upgrade").exists()
    with pytest.raises(Refused, match="not found"):
        stage.lease()
    again = stage.once("prune")
    assert (again.returncode, outcomes(again.stderr)) == (0, ["was not there", "was not there", "were not there"])


def test_without_anything_that_says_where_the_api_server_is_there_is_one_line(stage: AdvertiserStage) -> None:
    done = stage.typed()
    assert done.returncode == BAD_CONFIGURATION
    (line,) = [each for each in (done.stdout + done.stderr).splitlines() if "KUBECONFIG" in each]
    assert "name a kubeconfig" in line
    assert stage.written_text() is None
