"""Of which gang a container is, its signed allocation says, and nothing that users can edit."""

from __future__ import annotations

from partage_plugins.vocabulary import Gang, Namespace
from partage_plugins.vocabulary.keys import GANG, GANG_SIZE
from unit.crishim.rules.allocations import allocation, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

TRAIN = {"namespace": "team", "name": "train", "size": 2}


def test_plugins_are_told_the_gang_of_the_allocation(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(Create(annotations=signed(allocation(gang=TRAIN))))
    assert stage.fake.asked[0][0].gang == Gang(Namespace("team"), "train", 2)


def test_an_annotation_of_users_makes_no_gang(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(Create(annotations={**signed(allocation()), GANG: "train", GANG_SIZE: "2"}))
    assert stage.fake.asked[0][0].gang is None
