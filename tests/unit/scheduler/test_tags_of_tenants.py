"""A tag is its namespace's own: it neither repels nor attracts pods of others, unless tags are global."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.allocator.settings import settings_from
from partage_plugins.api import Namespace, Tags
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import TAG_PATTERN, CardId
from partage_scheduler.explanation import explain
from partage_scheduler.objects import ApiPod
from support.objects import pod
from unit.scheduler.test_deciding_on_pods import NOW, Stage

SETTING = "PARTAGE_GPU_TAGS"
NAMESPACES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True).map(Namespace)
TAGS = st.from_regex(TAG_PATTERN.replace(r"\A", "").replace(r"\Z", ""), fullmatch=True)
KEPT_AWAY = "0/1 nodes are available: 1 node(s) had cards whose tags keep the pod away."


def tagged(name: str, namespace: str, *, milli: int = 100, **tags: str) -> ApiPod:
    """A pod with tags such as `anti_affinity="x"`."""
    said = {f"partage.dev/{sort.replace('_', '-')}": tag for sort, tag in tags.items()}
    return pod(name, namespace=namespace, milli=milli, annotations=said)


@pytest.fixture(params=["namespace", "global"])
def scope(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(SETTING, request.param)
    return str(request.param)


def test_anti_affinity_keeps_out_pods_of_its_own_namespace_alone(scope: str) -> None:
    stage = Stage(m=1)
    assert stage.place(tagged("hog", "evil", milli=1, anti_affinity="x")) == ["m"]
    assert stage.place(tagged("train", "team", anti_affinity="x")) == [KEPT_AWAY if scope == "global" else "m"]
    assert stage.place(tagged("second", "evil", anti_affinity="x")) == [KEPT_AWAY]


def test_affinity_draws_nobody_to_the_card_of_another_namespace(scope: str) -> None:
    stage = Stage(m=1, n=1)
    assert stage.place(tagged("first", "team", affinity="x")) == ["m"]
    assert stage.place(tagged("stranger", "evil", affinity="x")) == ["m" if scope == "global" else "n"]
    assert stage.place(tagged("second", "team", affinity="x")) == ["m"]


def test_the_same_exclusion_of_another_namespace_is_another_one(scope: str) -> None:
    stage = Stage(m=1)
    assert stage.place(tagged("first", "team", exclusion="x")) == ["m"]
    assert stage.place(tagged("second", "team", exclusion="x")) == ["m"]
    assert stage.place(tagged("stranger", "evil", exclusion="x")) == ["m" if scope == "global" else KEPT_AWAY]


def test_who_spells_another_namespace_s_tag_has_it_no_more_than_others() -> None:
    stage = Stage(m=1, n=1)
    assert stage.place(tagged("first", "team", affinity="x")) == ["m"]
    assert stage.place(tagged("stranger", "evil", affinity="team.x")) == ["n"]


def test_a_card_is_explained_as_it_is_decided_on(scope: str) -> None:
    stage = Stage(m=1)
    stage.place(tagged("hog", "evil", anti_affinity="x"))
    (node,) = explain(stage.cycle, tagged("train", "team", anti_affinity="x"), NOW).nodes
    assert bool(node.cards[0].obstacles) == (scope == "global")


def test_a_wrong_value_stops_the_scheduler() -> None:
    assert not settings_from({}).global_tags
    with pytest.raises(ValueError, match=f"{SETTING}: 'everywhere'.*; allowed: namespace, global"):
        settings_from({SETTING: "everywhere"})


@given(NAMESPACES, TAGS, NAMESPACES, TAGS)
def test_no_two_namespaces_share_a_tag_and_every_reader_of_allocations_takes_it(
    namespace: Namespace, tag: str, other: Namespace, other_tag: str
) -> None:
    one, two = (Tags(exclusion=text).in_namespace(where) for where, text in ((namespace, tag), (other, other_tag)))
    assert (one == two) == ((namespace, tag) == (other, other_tag))
    grant = GpuGrant(card=CardId("GPU-0"), share_milli=1, limit_milli=1, memory_bytes=1, tags=one)
    assert msgspec.convert(msgspec.to_builtins(grant), GpuGrant) == grant
