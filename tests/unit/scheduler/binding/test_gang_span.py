"""When the owner of a gang is told that it is on several nodes."""

from __future__ import annotations

from collections import Counter

import pytest

from partage_plugins.vocabulary import Gang, Namespace, NodeName
from partage_scheduler.cycle import Bind, spans_nodes
from partage_scheduler.queue import Waiting
from support.objects import pod
from unit.scheduler.test_deciding_on_pods import NOW, Stage

TRAIN = Gang(Namespace("team"), "train", 2)


def told(*nodes: str, before: tuple[str, ...] = (), milli: int = 500) -> str | None:
    """Of pods that are bound there at once, where others were before."""
    stage = Stage(m=2, n=2, o=2)
    binds = list[Bind]()
    for number, node in enumerate(nodes):
        each = pod(f"p{number}", gang="train", size=2, milli=milli, nodeSelector={"name": node})
        (verdict,) = stage.cycle.decide(Waiting((each,)), NOW)
        assert isinstance(verdict, Bind)
        binds.append(verdict)
    assert stage.cluster.seats.of_gang(TRAIN) == Counter(nodes)
    return spans_nodes(TRAIN, binds, Counter(NodeName(node) for node in (*nodes, *before)))


def test_it_is_told_once_it_is_on_several() -> None:
    words = told("m", "n")
    assert words is not None
    assert words.startswith("gang train is on 2 nodes, and its pods have parts of cards.")


@pytest.mark.parametrize(("node", "is_told"), [("m", False), ("n", False), ("o", True)])
def test_one_that_comes_later_is_news_on_another_node_only(node: str, *, is_told: bool) -> None:
    assert (told(node, before=("m", "n")) is not None) is is_told


def test_it_is_not_told_on_one_node_or_with_whole_cards() -> None:
    assert told("m", "m") is None
    assert told("m", "n", milli=1000) is None
