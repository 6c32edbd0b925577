"""An advertiser that is killed at any moment leaves nothing behind, and the next one is right."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from partage_advertiser.signs import LABEL
from partage_base.files import UNFINISHED
from partage_plugins.vocabulary.places import PAUSE_FOLDER
from support.advertiser_stage import CHILD, MODULE, AdvertiserStage, kubeconfig
from support.simgpu_stage import UUIDS

pytestmark = pytest.mark.timeout(600)

ROUNDS = 12
SEED = 7
LONGEST_LIFE_S = 3.0
"""A start takes about half of that."""
STEPS = ("lose 0", "restore 0", "xid 1 94", "nvml hang", "nvml resume", "lose 1", "reload", "restore 1")


def test_an_advertiser_killed_at_any_moment_is_right_when_it_is_started_again(stage: AdvertiserStage) -> None:
    chance, access = random.Random(SEED), kubeconfig(stage.rig, stage.name)  # noqa: S311  not for secrets
    first = stage.start()  # which sees both cards: one that is lost before anybody looked is nobody's
    stage.wait_healths("ok", "ok")
    first.kill()
    for number in range(ROUNDS):
        component = stage.begin("--look-every-s", "1", access=access)
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))  # a moment for the kill, nothing is awaited
        stage.tell_driver(STEPS[number % len(STEPS)])
        component.kill()
    for command in ("nvml resume", "restore 0", "lose 1"):
        stage.tell_driver(command)
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "lost")
    assert stage.told_text() == stage.written_text()


def test_nothing_is_left_of_a_killed_advertiser(stage: AdvertiserStage) -> None:
    component = stage.start()
    stage.wait_healths("ok", "ok")
    assert len(stage.processes(CHILD)) == 1
    stage.tell_driver("nvml hang")  # so that its child can't end by itself
    component.kill()
    stage.wait("no process is left", lambda: _left(stage))
    assert _files(stage) == ["inventory.json"]


def test_what_a_killed_advertiser_had_half_written_is_gone_after_the_next(stage: AdvertiserStage) -> None:
    for folder in ("/run/partage", f"/{PAUSE_FOLDER}"):
        stage.machine.write(f"{folder}/{UNFINISHED}0", "half an inv")
        stage.machine.run("touch", "--date=-2 minutes", f"{folder}/{UNFINISHED}0")
    stage.rig.cluster.kubectl.run("label", "node", stage.name, f"{LABEL}=drain-required")
    stage.start()
    stage.wait_healths("degraded: paused", "degraded: paused")
    assert _files(stage) == ["inventory.json"]


def test_a_killed_child_costs_no_card(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    (before,) = stage.processes(CHILD)
    os.kill(int(before.name), signal.SIGKILL)
    stage.wait("another asks the driver", lambda: _why_not_another(stage, before.name))
    stage.tell_driver("lose 1")
    stage.wait_healths("ok", "lost")
    assert not [each for each in stage.events() if UUIDS[0] in each["message"]]


def test_a_stopped_child_is_a_driver_that_hangs(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    (before,) = stage.processes(CHILD)
    os.kill(int(before.name), signal.SIGSTOP)
    stage.wait("another asks the driver", lambda: _why_not_another(stage, before.name))
    stage.wait_healths("ok", "ok")


def test_one_that_is_told_to_end_leaves_what_was_told(stage: AdvertiserStage) -> None:
    component = stage.start()
    stage.wait_healths("ok", "ok")
    told = stage.told_text()
    component.stop()
    assert (stage.told_text(), stage.written_text()) == (told, told)
    stage.wait("no process is left", lambda: _left(stage))


def _left(stage: AdvertiserStage) -> str | None:
    left = [*stage.processes(MODULE), *stage.processes(CHILD)]
    return f"{[str(each) for each in left]} are there" if left else None


def _files(stage: AdvertiserStage) -> list[str]:
    """Of ours, as far as they are not meant to be there; crishim's and the lock are."""
    kept = {"advertiser/lock", "advertiser/pause/driver-upgrade"}
    run = stage.machine.path("/run/partage")
    ours = [*run.glob("*inventory*"), *(path for path in run.glob("advertiser/**/*") if path.is_file())]
    return sorted({str(path.relative_to(run)) for path in ours} - kept)


def _why_not_another(stage: AdvertiserStage, before: str) -> str | None:
    found = [each.name for each in stage.processes(CHILD)]
    return None if len(found) == 1 and found != [before] else f"there are {found}"
