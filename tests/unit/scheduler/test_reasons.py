"""Reasons are codes: each has one sentence, and no decision depends on a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pytest

import partage_gpu
import partage_plugins
import partage_scheduler
from partage_plugins import Refused, hookimpl
from partage_plugins.answers import Fits, Slots
from partage_plugins.api import ContainerName, PodRequest, Reason, Slot
from partage_plugins.api.reasons import SAID
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import cluster_events_for, nowhere
from partage_scheduler.decision.score_cache import MOST_SAID, ScoreCache
from support.objects import pod
from support.sides import Thing
from unit.scheduler.piles import Piles, World, wanting

DOCS = Path(__file__).parents[3] / "docs"
SAME_BEGINNINGS = (
    "node(s) had too few things",
    "node(s) had untolerated taint, says the plugin",
    "node(s) didn't match Pod's node affinity/selector of things",
    "node(s) had no cards",
    "it has no cards",
    "node(s) were unschedulable",
    "node(s) had no crishim in force",
)


MOVED = ("plugins.vocabulary", "plugins.sides")
"""Their import raises an ImportError that names the new module."""


def stated() -> Iterator[tuple[str, Reason]]:
    """Every reason that one of our modules defines, and its name there."""
    for package in (partage_plugins, partage_gpu, partage_scheduler):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", *MOVED)):
                for name, value in vars(import_module(module.name)).items():
                    reasons = value if isinstance(value, tuple) else (value,)
                    yield from ((name, each) for each in reasons if isinstance(each, Reason))


STATED = tuple(stated())


def test_every_code_has_one_sentence_and_every_sentence_one_code() -> None:
    found = {(each.code, each.words, each.lasts) for _, each in STATED}
    assert len(found) > 30
    assert len({code for code, _, _ in found}) == len({words for _, words, _ in found}) == len(found)


def test_the_documents_have_every_reason_with_its_code_and_sentence() -> None:
    table = (DOCS / "scheduler.md").read_text().partition("| code | in words |")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    told = {(code.strip("`"), words.replace("{{}: {}}", "{{{}: {}}}"), lasts == "yes") for code, words, lasts in rows}
    assert told == {(each.code, each.words, each.lasts) for name, each in STATED if not name.startswith("_")}


@pytest.mark.parametrize("page", ["troubleshooting.md", "configuration.md"])
def test_sentences_in_the_documents_are_sentences_of_ours(page: str) -> None:
    text = " ".join((DOCS / page).read_text().split())
    said = re.findall(r"`[^`]*?((?:node\(s\)|Insufficient)[^`,.;…]*)", text)
    ours = re.compile("|".join(re.escape(each.words).replace(r"\{\}", ".+") for _, each in STATED if each != SAID))
    assert said
    assert [each for each in said if not ours.fullmatch(each.strip())] == []


class Speaking(Piles):
    """A plugin with reasons of its own."""

    reason: str | Reason = ""

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        fits, codes, _ = super().partage_fits(request, slots)
        return Fits(fits, codes, (self.reason,))


def speaking(reason: str | Reason) -> World:
    world = World(Speaking, a=1, b=1)
    world.plugin.reason = reason
    return world


def helped_by(world: World, count: int = 2) -> frozenset[ClusterEvent]:
    return cluster_events_for(pod("p"), world.decider.explain(wanting(count)), has_devices=True)


@pytest.mark.parametrize("words", SAME_BEGINNINGS)
def test_a_plugins_words_are_shown_as_they_are_and_change_nothing_however_they_begin(words: str) -> None:
    world = speaking(words)
    assert nowhere(world.decider.explain(wanting(2))) == f"0/2 nodes are available: 2 {words}."
    assert ClusterEvent.FREED in helped_by(world), "a pod that leaves may help"
    (slot,) = world.decider.slots.of_all(["a"]).tolist()  # type: ignore[list-item]
    assert not world.decider.disliked(wanting(2), np.array([slot]))[0].lasts, "kube-scheduler may look for victims"


class Refusing(Piles):
    """Reports that everything fits, and refuses to allocate."""

    words = ""

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> dict[ContainerName, tuple[Thing, ...]]:
        raise Refused(self.words)


@pytest.mark.parametrize("words", SAME_BEGINNINGS)
def test_nor_does_a_refusal_at_the_last_moment(words: str) -> None:
    world = World(Refusing, a=1, b=1)
    world.plugin.words = words
    assert world.place(wanting(1)) is None
    assert nowhere(world.decider.explain(wanting(1))) == f"0/2 nodes are available: 2 {words}."
    assert ClusterEvent.FREED in helped_by(world, 1)


def test_a_plugin_may_say_that_a_reason_lasts_whatever_its_words() -> None:
    world = speaking(Reason("thing/none", "node(s) had no {} things", lasts=True, figures=("blue",)))
    assert nowhere(world.decider.explain(wanting(2))) == "0/2 nodes are available: 2 node(s) had no blue things."
    assert ClusterEvent.FREED not in helped_by(world)


@pytest.mark.slow
def test_a_plugin_that_finds_new_words_for_ever_fills_no_memory() -> None:
    score_cache = ScoreCache()
    shape_scores = score_cache.of("shape", lambda _slots, _scores: None)
    for number in range(MOST_SAID + 100):
        score_cache.changed(Slot(number % 2))
        stale, words = score_cache.unexplained(shape_scores), SAID.of(f"{number} things are missing")
        shape_scores.explain(stale, np.ones(stale.size, np.uint16), (words,))
        score_cache.explained(shape_scores)
        assert shape_scores.said[shape_scores.codes[number % 2]] == words
    assert len(shape_scores.said) < MOST_SAID
