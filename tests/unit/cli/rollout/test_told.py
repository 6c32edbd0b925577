"""Reports of nodes in the API server, which anyone may have written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import Meta, Node
from partage_cli.rollout.node_state import (
    CANARY,
    INSTALL,
    INSTALLED,
    LONGEST_WHY,
    DesiredState,
    Member,
    member_of,
    members_of,
    telling,
)

VERSION = "0.1.0-g000000000001"


def a_node(name: str = "n1", *, label: str | None = "yes", canary: str | None = None, told: str | None = None) -> Node:
    labels = {key: value for key, value in ((INSTALL, label), (CANARY, canary)) if value is not None}
    annotations = {} if told is None else {INSTALLED: told}
    return Node(metadata=Meta(name=name, labels=labels, annotations=annotations))


def test_what_is_told_is_read_back() -> None:
    told = telling(VERSION, DesiredState.ON, "failed", "no room")
    assert member_of(a_node(told=told.text(), canary="yes")) == Member(
        name="n1", wish=DesiredState.ON, is_canary=True, told=told
    )
    assert told.text() == '{"v":1,"version":"0.1.0-g000000000001","label":"yes","state":"failed","why":"no room"}'


def test_what_is_told_counts_for_its_version_and_label() -> None:
    member = member_of(a_node(told=telling(VERSION, DesiredState.ON, "in-force").text()))
    assert member is not None
    assert member.state(VERSION) == "in-force"
    assert member.state("another") is None
    off = member_of(a_node(label="off", told=telling(VERSION, DesiredState.ON, "in-force").text()))
    assert off is not None
    assert off.state(VERSION) is None


@pytest.mark.parametrize("label", [None, "", "no", "Yes", "true"])
def test_a_node_with_another_label_is_none_of_ours(label: str | None) -> None:
    assert member_of(a_node(label=label)) is None


def test_nodes_are_told_by_name() -> None:
    members = members_of([a_node("n2"), a_node("n1"), a_node("n0", label=None)])
    assert [member.name for member in members] == ["n1", "n2"]


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", '{"v":2,"version":"x","label":"yes","state":"off"}', '{"v":1,"state":"well"}', "[" * 9999],
)
def test_what_no_installer_wrote_says_nothing(text: str) -> None:
    member = member_of(a_node(told=text))
    assert member is not None
    assert member.told is None


def test_a_later_field_is_passed_over() -> None:
    text = telling(VERSION, DesiredState.ON, "waiting").text().replace("{", '{"later":[1],', 1)
    member = member_of(a_node(told=text))
    assert member is not None
    assert member.state(VERSION) == "waiting"


@given(st.text(max_size=2000))
def test_a_reason_is_one_short_printable_line(why: str) -> None:
    told = telling(VERSION, DesiredState.ON, "failed", why)
    assert len(told.why) <= LONGEST_WHY
    assert told.why.isprintable()
