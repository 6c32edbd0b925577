"""Each container whose request is changed is reported once, with its names and the reason; nothing else is."""

from __future__ import annotations

from partage_plugins.api import Kind
from unit.crishim.rules.allocations import allocation, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

MAIN = {"namespace": "default", "pod": "trainer", "container": "main"}
ALL = ("NVIDIA_VISIBLE_DEVICES", "all")


def test_a_container_with_a_grant_is_told_of_with_its_generation_and_kinds(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(Create(annotations=signed(allocation(gen=3))))
    (told,) = stage.told
    assert (told.what, told.container, told.gen, told.kinds) == ("granted", MAIN, 3, (Kind("gpu"),))


def test_a_container_that_was_kept_from_cards_is_told_of(stage: Stage, crishim: Crishim) -> None:
    crishim.held_back(Create(env=[ALL]))
    crishim.held_back(Create(mounts=[("/var/run/nvidia-container-devices/all", "/dev/null")]))
    assert [(each.what, each.container, each.asked) for each in stage.told] == [("guarded", MAIN, True)] * 2


def test_one_that_asked_for_nothing_is_told_of_as_such(stage: Stage, crishim: Crishim) -> None:
    stage.runtime.handlers["sandbox-1"] = "nvidia"
    crishim.held_back(Create())
    assert [each.asked for each in stage.told] == [False]


def test_what_passes_or_is_refused_is_not_told_of_as_changed(stage: Stage, crishim: Crishim) -> None:
    crishim.passes(Create())
    crishim.refusal(Create(annotations=signed(allocation(node="n9"))))
    assert [each.what for each in stage.told] == ["refused"]
