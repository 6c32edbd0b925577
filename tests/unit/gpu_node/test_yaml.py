"""YAML is read as JSON would be; constructs that readers interpret differently are refused with their line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.node.nvidia_specs import read_yaml
from unit.gpu_node.nodes import SAMPLES

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], max_codepoint=0xFFFF), max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(min_value=-(10**17), max_value=10**17), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3), max_leaves=15
)


@given(document=VALUES)
def test_what_json_writes_is_read_again(document: Any) -> None:
    assert read_yaml(json.dumps(document)) == document


def test_nvidias_own_file_says_the_same_in_both_formats() -> None:
    yaml, as_json = ((SAMPLES / name).read_text() for name in ("nvidia.yaml", "nvidia.json"))
    assert read_yaml(yaml) == json.loads(as_json)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 438", 438),
        ("a: libcuda.so.1::/usr/lib/libcuda.so", "libcuda.so.1::/usr/lib/libcuda.so"),
        ("a:", None),
        ("a: ~", None),
        ("a: 'yes'", "yes"),
        ("a: #x", None),
        ("a:\n- - 1\n  - 2\n-", [[1, 2], None]),
    ],
)
def test_scalars_and_collections_mean_what_yaml_says(text: str, value: object) -> None:
    assert read_yaml(text) == {"a": value}


@pytest.mark.parametrize(
    "value",
    [
        *("0644", "1.0", "1e3", "0x1f", ".5", "+1", "1_000", ".inf", "12:30", "2026-01-01"),
        *("yes", "No", "on", "True", "NULL", "&a x", "*a", "!!str x", "{b: 1, b: 2}", "{[1]: 2}"),
    ],
)
def test_what_readers_take_for_different_things_is_refused_with_its_line(value: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 has .*, which readers take for different things"):
        read_yaml(f"first: 1\na: {value}")


@pytest.mark.parametrize("text", ["a: 1\n b: 2", "- a\nb: 1", "a: 1\n---\nb: 1", '"open', "\x07"])
def test_a_wrong_structure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"YAML|second document"):
        read_yaml(text)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nothing stands in it"):
        read_yaml(text)


@pytest.mark.parametrize("text", ["- " * 100_000, "\n".join(" " * depth + "a:" for depth in range(2000)), "[" * 5000])
def test_depth_has_a_bound(text: str) -> None:
    with pytest.raises(ValueError, match="more than 16 levels"):
        read_yaml(text)


@given(st.one_of(st.text(), st.text("ab:- \n\"'#{}[]&*|>0.", max_size=80)))
def test_any_text_gives_a_document_or_a_value_error(text: str) -> None:
    try:
        value = read_yaml(text)
    except ValueError:
        return
    assert json.loads(json.dumps(value)) == value
