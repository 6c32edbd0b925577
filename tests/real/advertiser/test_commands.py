"""What the command does once: tell, show, take back; and what it refuses."""

from __future__ import annotations

import json

import pytest

from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from partage_plugins.vocabulary.places import PAUSE_FOLDER
from real.advertiser.auditing import Audit
from rig.errors import Refused
from support.advertiser_stage import CHILD, AdvertiserStage, kubeconfig
from support.simgpu_stage import UUIDS

pytestmark = pytest.mark.timeout(300)

BEATS = 'partage_advertiser_heartbeats_total{outcome="done"}'
FAILED, BAD_CONFIGURATION = 1, 78


def ids(text: str) -> list[str]:
    return [card["id"] for card in json.loads(text)["kinds"]["gpu"]["cards"]]


def test_a_dry_run_prints_the_inventory_and_writes_nothing(stage: AdvertiserStage, audit: Audit) -> None:
    done = stage.once("--dry-run")
    assert done.returncode == 0
    assert ids(done.stdout) == list(UUIDS)
    assert done.stderr.count("would be written") == 2
    assert (stage.told_text(), stage.written_text()) == (None, None)
    assert not audit.writes()


def test_once_writes_file_and_annotation_and_a_second_time_neither(stage: AdvertiserStage, audit: Audit) -> None:
    first = stage.once("--once")
    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr.count("written") == 2
    text = stage.told_text()
    assert text == stage.written_text()
    assert ids(text or "") == list(UUIDS)
    second = stage.once("--once")
    assert (second.returncode, second.stderr.count("says so already")) == (0, 2)
    assert audit.writes() == {("patch", "nodes"): 1}
    assert not stage.processes(CHILD)


def test_once_waits_for_a_driver_that_takes_its_time(stage: AdvertiserStage) -> None:
    stage.tell_driver("nvml delay 200")
    assert stage.once("--once").returncode == 0
    assert [card.id for card in stage.cards()] == list(UUIDS)


def test_prune_takes_everything_back_and_says_so(stage: AdvertiserStage) -> None:
    component = stage.start()
    stage.wait_figure(BEATS, 1)
    component.stop()
    stage.machine.write(f"/{PAUSE_FOLDER}/driver-upgrade", "an upgrade\n")
    done = stage.once("prune")
    assert done.returncode == 0
    assert [line.rpartition(": ")[2] for line in done.stderr.splitlines()] == ["removed"] * 3
    assert (stage.told_text(), stage.written_text()) == (None, None)
    assert not stage.machine.path(f"/{PAUSE_FOLDER}/driver-upgrade").exists()
    with pytest.raises(Refused, match="not found"):
        stage.lease()
    again = stage.once("prune")
    assert again.returncode == 0
    assert [line.rpartition(": ")[2] for line in again.stderr.splitlines()] == [
        "was not there",
        "was not there",
        "were not there",
    ]


def test_a_dry_prune_removes_nothing(stage: AdvertiserStage) -> None:
    stage.once("--once")
    text = stage.told_text()
    done = stage.once("prune", "--dry-run")
    assert done.returncode == 0
    assert f"annotation {ANNOTATION} of node {stage.name}: would be removed" in done.stderr
    assert (stage.told_text(), stage.written_text()) == (text, text)


@pytest.mark.parametrize("words", [("prune",), ("--once",)])
def test_nothing_is_done_beside_an_advertiser_that_runs(stage: AdvertiserStage, words: tuple[str, ...]) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    done = stage.once(*words)
    assert done.returncode == FAILED
    (line,) = done.stderr.splitlines()
    assert "another advertiser of this node holds" in line
    assert stage.told_text() == stage.written_text()


def test_a_second_advertiser_of_a_node_ends_with_one_line(stage: AdvertiserStage) -> None:
    stage.start()
    done = stage.once("--log-format", "text")
    assert done.returncode == FAILED
    lines = [each for each in (done.stdout + done.stderr).splitlines() if "another" in each]
    (line,) = lines
    assert "another advertiser of this node holds" in line
    assert "Traceback" not in done.stderr


def test_without_anything_that_says_where_the_api_server_is_there_is_one_line(stage: AdvertiserStage) -> None:
    done = stage.typed()
    assert done.returncode == BAD_CONFIGURATION
    (line,) = [each for each in (done.stdout + done.stderr).splitlines() if "KUBECONFIG" in each]
    assert "name a kubeconfig" in line
    assert stage.written_text() is None


def test_a_wrong_setting_of_the_cards_is_one_line(stage: AdvertiserStage) -> None:
    done = stage.once(env={"PARTAGE_GPU_QUIET_S": "soon", "PARTAGE_GPU_POOL": "some"})
    assert done.returncode == BAD_CONFIGURATION
    (line,) = [each for each in (done.stdout + done.stderr).splitlines() if "PARTAGE_GPU_QUIET_S" in each]
    assert "PARTAGE_GPU_POOL has 'some'" in line
    assert "Traceback" not in done.stderr


def test_an_api_server_that_is_nowhere_keeps_no_node_from_its_file(stage: AdvertiserStage) -> None:
    access = kubeconfig(stage.rig, stage.name)
    nowhere = access.with_name("nowhere.kubeconfig")
    nowhere.write_text(access.read_text().replace(stage.rig.control.server, "https://198.18.15.254:1"))
    component = stage.begin(access=nowhere)
    stage.wait_written("ok", "ok")
    component.wait_ready()
    stage.tell_driver("lose 0")
    stage.wait_written("lost", "ok")
    component.require_running()
    assert stage.figure("partage_advertiser_published") == 0
