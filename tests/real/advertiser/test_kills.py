"""An advertiser that is killed at any moment leaves nothing behind, and its successor publishes correct facts."""

from __future__ import annotations

import random
import time
from itertools import chain

from partage_base.files import UNFINISHED
from partage_plugins.api.places import PAUSE_FOLDER
from support.advertiser_stage import CHILD, MODULE, AdvertiserStage, kubeconfig
from support.extent import drawn

SEED = 7
LONGEST_LIFE_S = 2.0
"""A start takes about half of this."""
TROUBLES = (
    ("lose 0", "restore 0"),
    ("xid 1 94",),
    ("nvml hang", "nvml resume"),
    ("lose 1", "reload", "restore 1"),
)
"""Driver faults; an advertiser is killed after each step."""


def test_an_advertiser_killed_at_any_moment_is_right_when_it_is_started_again(stage: AdvertiserStage) -> None:
    chance, access = random.Random(SEED), kubeconfig(stage.rig, stage.name)  # noqa: S311  not for secrets
    first = stage.start()  # sees both cards: a card that is lost before the first look is unknown
    stage.wait_healths("ok", "ok")
    first.kill()
    for step in chain.from_iterable(drawn("real/advertiser: troubles", TROUBLES, 2)):
        component = stage.begin("--look-every-s", "1", access=access)
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))  # a random moment for the kill; nothing is awaited
        stage.tell_driver(step)
        component.kill()
    stage.tell_driver("lose 1")
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "lost")
    assert stage.told_text() == stage.written_text()


def test_nothing_is_left_of_a_killed_advertiser(stage: AdvertiserStage) -> None:
    component = stage.start()
    stage.wait_healths("ok", "ok")
    assert len(stage.processes(CHILD)) == 1
    stage.tell_driver("nvml hang")  # so that its child can't exit by itself
    component.kill()
    stage.wait("no process is left", lambda: _left(stage))
    for folder in ("/run/partage", f"/{PAUSE_FOLDER}"):
        stage.machine.write(f"{folder}/{UNFINISHED}0", "half an inv")
        stage.machine.run("touch", "--date=-2 minutes", f"{folder}/{UNFINISHED}0")
    stage.tell_driver("nvml resume")
    stage.start()
    assert _files(stage) == ["inventory.json"]


def _left(stage: AdvertiserStage) -> str | None:
    left = [*stage.processes(MODULE), *stage.processes(CHILD)]
    return f"{[str(each) for each in left]} are there" if left else None


def _files(stage: AdvertiserStage) -> list[str]:
    """Our files, except for the lock, which is meant to stay."""
    run = stage.machine.path("/run/partage")
    ours = [*run.glob("*inventory*"), *(path for path in run.glob("advertiser/**/*") if path.is_file())]
    return sorted({str(path.relative_to(run)) for path in ours} - {"advertiser/lock"})
