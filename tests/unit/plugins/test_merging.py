"""Merging adjustments: owners of fields, agreement, conflict; never decided by order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.errors import AdjustmentConflict
from partage_plugins.rules.merging import Merged, merge
from partage_plugins.vocabulary import Adjustment, Kind, Mount, PluginName

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
    enforces=st.dictionaries(st.just(Kind("gpu")), st.sampled_from([("memory",), ("share", "limit"), ()])),
)
ANSWERS = st.lists(ADJUSTMENTS, max_size=4).map(lambda some: list(zip(NAMES, some, strict=False)))


def outcome(answers: list[tuple[PluginName, Adjustment]]) -> Merged | None:
    try:
        return merge(answers)
    except AdjustmentConflict:
        return None


@given(ANSWERS)
def test_whether_plugins_agree_does_not_depend_on_their_order(answers: list[tuple[PluginName, Adjustment]]) -> None:
    forward, backward = outcome(answers), outcome(answers[::-1])
    assert (forward is None) == (backward is None)
    if forward is not None and backward is not None:
        assert forward.adjustment.env == backward.adjustment.env
        assert set(forward.adjustment.mounts) == set(backward.adjustment.mounts)
        assert forward.adjustment.enforces == backward.adjustment.enforces
        assert {field: set(names) for field, names in forward.owners.items()} == {
            field: set(names) for field, names in backward.owners.items()
        }


@given(ANSWERS)
def test_every_changed_field_has_an_owner_and_nothing_is_lost(answers: list[tuple[PluginName, Adjustment]]) -> None:
    merged = outcome(answers)
    if merged is None:
        return
    for plugin, answer in answers:
        assert answer.env.items() <= merged.adjustment.env.items()
        assert set(answer.mounts) <= set(merged.adjustment.mounts)
        assert all(plugin in merged.owners[f"env {name}"] for name in answer.env)
        assert all(plugin in merged.owners[f"mounts {mount.container_path}"] for mount in answer.mounts)
        assert all(set(promises) <= set(merged.adjustment.enforces[kind]) for kind, promises in answer.enforces.items())
    assert len(merged.owners) == sum(
        map(len, (merged.adjustment.env, merged.adjustment.mounts, merged.adjustment.annotations))
    )


@given(ANSWERS)
def test_a_conflict_is_two_different_values_for_one_field(answers: list[tuple[PluginName, Adjustment]]) -> None:
    values: dict[tuple[str, str], set[object]] = {}
    for _, answer in answers:
        for name, value in answer.env.items():
            values.setdefault(("env", name), set()).add(value)
        for mount in answer.mounts:
            values.setdefault(("mounts", mount.container_path), set()).add(mount)
        for name, value in answer.annotations.items():
            values.setdefault(("annotations", name), set()).add(value)
    assert (outcome(answers) is None) == any(len(different) > 1 for different in values.values())
