"""Every dialect names its words, and those that ask are the ones by which its rows ask."""

from __future__ import annotations

import pytest

from partage_dialects.foreign import DIALECTS
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.registry.entry_points import installed
from partage_plugins.rules.words import Lexicon, resources_of
from partage_plugins.sides.scheduler import SchedulerSide
from partage_scheduler.decision import Ledger
from support.dialect_rows import FILES, Row, all_plugins_where, rows_of

ROWS = [pytest.param(row, id=f"{file.stem}: {row.name}") for file in FILES for row in rows_of(file) if row.request]


def test_the_words_of_every_dialect_that_can_be_switched_off_are_known_all_the_same() -> None:
    names = {each.name for each in installed(SCHEDULER_GROUP) if each.name.endswith("-dialect")}
    assert {*DIALECTS, "native-dialect"} == names
    assert all(dialect().partage_words() for dialect in DIALECTS.values())


@pytest.mark.parametrize("row", ROWS)
def test_a_pod_that_is_read_speaks_and_is_told_nothing(row: Row) -> None:
    side = SchedulerSide(all_plugins_where(row.nvidia_gpu), Ledger())
    lexicon = Lexicon(side.words())
    pod = row.read()
    assert lexicon.in_vain(pod, asks=True, absent=resources_of(pod)) is None
    assert list(lexicon.spoken(pod, absent=resources_of(pod)))
