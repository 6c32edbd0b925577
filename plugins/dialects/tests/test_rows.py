"""Each dialect against its rows: what a pod's manifest asks for, or the refusal; and by which of its words."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import pytest

from partage_dialects.foreign import DIALECTS
from partage_plugins.api import Kind, Pod
from partage_plugins.codecs import read_gang
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.registry.calls import Activity, Call, bound
from partage_plugins.registry.entry_points import installed
from partage_plugins.registry.registry import Registry
from partage_plugins.rules.words import Lexicon, resources_of
from partage_scheduler.decision import Ledger
from support.dialect_rows import FILES, Row, all_plugins_where, rows_of

FEWEST_ROWS: Final = 25
ROWS: Final = [pytest.param(file.stem, row, id=f"{file.stem}: {row.name}") for file in FILES for row in rows_of(file)]
ASKING: Final = [
    pytest.param(row, id=f"{file.stem}: {row.name}") for file in FILES for row in rows_of(file) if row.request
]
plugins = cache(all_plugins_where)


def reader(registry: Registry, dialect: str) -> Call:
    calls = bound(registry, "partage_requests", Activity(), traced=False)
    (found,) = [call for call in calls if call.plugin == f"{dialect}-dialect"]
    return found


def gang_of(pod: Pod) -> dict[str, object] | None:
    gang = read_gang(pod.ref.namespace, pod.annotations, pod.labels)
    return None if gang is None else {"name": gang.name, "size": gang.size}


def asked_by(pod: Pod, framework: SchedulerFramework) -> frozenset[Kind]:
    """As the scheduler reads a pod that it is to place: its gang, then its requests."""
    gang_of(pod)
    return framework.requests(pod).kinds


@pytest.mark.parametrize(("dialect", "row"), ROWS)
def test_a_row(dialect: str, row: Row) -> None:
    registry = plugins(row.nvidia_gpu)
    read, pod, all_together = reader(registry, dialect), row.read(), SchedulerFramework(registry, Ledger())
    if row.refused is None:
        assert (read(pod) or {}) == row.expected
        assert bool(asked_by(pod, all_together)) == bool(row.expected)
        assert gang_of(pod) == row.gang
        return
    with pytest.raises((DecodeError, Refused)) as refusal:
        asked_by(pod, all_together)
    assert row.refused in str(refusal.value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dialect_has_rows_for_what_its_users_know(file: Path) -> None:
    names = [row.name for row in rows_of(file)]
    assert len(names) >= FEWEST_ROWS
    assert len(set(names)) == len(names)


def test_the_words_of_every_dialect_that_can_be_switched_off_are_known_all_the_same() -> None:
    names = {each.name for each in installed(SCHEDULER_GROUP) if each.name.endswith("-dialect")}
    assert {*DIALECTS, "native-dialect"} == names
    assert all(dialect().partage_words() for dialect in DIALECTS.values())


@pytest.mark.parametrize("row", ASKING, ids=lambda row: row.name)
def test_a_pod_that_is_read_speaks_and_is_told_nothing(row: Row) -> None:
    framework = SchedulerFramework(plugins(row.nvidia_gpu), Ledger())
    lexicon = Lexicon(framework.words())
    pod = row.read()
    assert lexicon.in_vain(pod, asks=True, absent=resources_of(pod)) is None
    assert list(lexicon.spoken(pod, absent=resources_of(pod)))
