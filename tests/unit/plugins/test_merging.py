"""Merging adjustments: ownership of fields, agreement, conflict; order never matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import Adjustment, Kind, Mount, PluginName
from partage_plugins.errors import AdjustmentConflict
from partage_plugins.rules.merge import Owners, merge

NAMES = [PluginName(name) for name in "abcd"]
FEW = st.sampled_from(["x", "y", "z"])
ADJUSTMENTS = st.builds(
    Adjustment,
    env=st.dictionaries(FEW, FEW, max_size=3),
    mounts=st.lists(
        st.builds(Mount, container_path=FEW.map("/{}".format), host_path=FEW.map("/{}".format)),
        unique_by=lambda mount: mount.container_path,
    ).map(tuple),
    annotations=st.dictionaries(FEW, FEW, max_size=2),
    memory_swap_limit_in_bytes=st.sampled_from([None, 1 << 30, 2 << 30]),
    enforces=st.dictionaries(st.just(Kind("gpu")), st.sampled_from([("memory",), ("share", "limit"), ()])),
)
ANSWERS = st.lists(ADJUSTMENTS, max_size=4).map(lambda some: list(zip(NAMES, some, strict=False)))


def outcome(answers: list[tuple[PluginName, Adjustment]]) -> tuple[Adjustment, Owners] | None:
    try:
        return merge(answers)
    except AdjustmentConflict:
        return None


@given(ANSWERS)
def test_whether_plugins_agree_does_not_depend_on_their_order(answers: list[tuple[PluginName, Adjustment]]) -> None:
    forward, backward = outcome(answers), outcome(answers[::-1])
    assert (forward is None) == (backward is None)
    if forward is not None and backward is not None:
        (one, owners_of_one), (other, owners_of_other) = forward, backward
        assert one.env == other.env
        assert set(one.mounts) == set(other.mounts)
        assert one.enforces == other.enforces
        assert {field: set(names) for field, names in owners_of_one.items()} == {
            field: set(names) for field, names in owners_of_other.items()
        }


def entries(answer: Adjustment) -> Iterator[tuple[str, object]]:
    """Everything that it sets, by the owning field's name."""
    for name in Adjustment.__struct_fields__:
        match getattr(answer, name):
            case _ if name == "enforces":
                pass
            case Mapping() as values:
                yield from ((f"{name} {key}", value) for key, value in values.items())
            case tuple() as items:
                yield from ((f"{name} {getattr(each, 'container_path', each)}", each) for each in items)
            case None:
                pass
            case value:
                yield name, value


@given(ANSWERS)
def test_every_changed_field_has_an_owner_and_nothing_is_lost(answers: list[tuple[PluginName, Adjustment]]) -> None:
    merged = outcome(answers)
    if merged is None:
        return
    adjustment, owners = merged
    after = dict(entries(adjustment))
    for plugin, answer in answers:
        assert dict(entries(answer)).items() <= after.items()
        assert all(plugin in owners[field] for field, _ in entries(answer))
        assert all(set(promises) <= set(adjustment.enforces[kind]) for kind, promises in answer.enforces.items())
    assert owners.keys() == after.keys()


@given(ANSWERS)
def test_a_conflict_is_two_different_values_for_one_field(answers: list[tuple[PluginName, Adjustment]]) -> None:
    values: dict[str, set[object]] = {}
    for _, answer in answers:
        for field, value in entries(answer):
            values.setdefault(field, set()).add(value)
    assert (outcome(answers) is None) == any(len(different) > 1 for different in values.values())
