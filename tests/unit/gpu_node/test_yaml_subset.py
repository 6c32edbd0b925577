"""The YAML that programs write is read as JSON would be; everything else is named with its line, never guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.node.yaml_subset import read_yaml
from unit.gpu_node.nodes import SAMPLES

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(10**17), max_value=10**17),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("abcXYZ ._-:#", max_size=5), below, max_size=3),
    max_leaves=15,
)
DOCUMENTS = st.lists(VALUES, min_size=1, max_size=4) | st.dictionaries(st.text("abc", min_size=1), VALUES, min_size=1)


def written(value: Any, *, indent: int, step: int, hanging: int) -> Iterator[str]:
    """As Go's libraries write: lists at their key's indentation (`hanging` 0) or further in."""
    pad = " " * indent
    if isinstance(value, dict):
        for key, below in value.items():
            if isinstance(below, (dict, list)) and below:
                deeper = indent + (hanging if isinstance(below, list) else step)
                yield f"{pad}{json.dumps(key, ensure_ascii=True)}:"
                yield from written(below, indent=deeper, step=step, hanging=hanging)
            else:
                yield f"{pad}{json.dumps(key, ensure_ascii=True)}: {json.dumps(below, ensure_ascii=True)}"
    else:
        for below in value:
            if isinstance(below, (dict, list)) and below:
                lines = written(below, indent=indent + 2, step=step, hanging=hanging)
                yield f"{pad}- {next(lines).lstrip(' ')}"
                yield from lines
            else:
                yield f"{pad}- {json.dumps(below, ensure_ascii=True)}"


@pytest.mark.parametrize("hanging", [0, 2, 4])
@given(document=DOCUMENTS)
def test_what_is_written_is_read_again(document: Any, hanging: int) -> None:
    lines = written(document, indent=0, step=max(hanging, 2), hanging=hanging)
    assert read_yaml("\n".join(["---", *lines])) == document


def test_nvidias_own_file_says_the_same_in_both_formats() -> None:
    yaml, as_json = ((SAMPLES / name).read_text() for name in ("nvidia.yaml", "nvidia.json"))
    assert read_yaml(yaml) == json.loads(as_json)


def test_the_style_of_older_tools_is_read() -> None:
    text = "cdiVersion: 0.5.0\nedits:\n  env:\n  - A=b:c # no\n  hooks:\n  - args:\n    - x\n    path: /x # why\n"
    edits = {"env": ["A=b:c"], "hooks": [{"args": ["x"], "path": "/x"}]}
    assert read_yaml(text) == {"cdiVersion": "0.5.0", "edits": edits}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 'it''s'", "it's"),
        (r'a: "\u00e9\n"', "é\n"),
        ("a: rw", "rw"),
        ("a: 438", 438),
        ("a: --link", "--link"),
        ("a: libcuda.so.1::/usr/lib/libcuda.so", "libcuda.so.1::/usr/lib/libcuda.so"),
        ("a:", None),
        ("a: ~", None),
        ("a: {}", {}),
        ("a: []\r", []),
        ("a: #x", None),
        ("a: b#c", "b#c"),
        ("a:\n  # comment\n\n  b: 1", {"b": 1}),
        ("a:\n- - 1\n  - 2\n-", [[1, 2], None]),
    ],
)
def test_scalars_and_collections_mean_what_yaml_says(text: str, value: object) -> None:
    assert read_yaml(text) == {"a": value}


@pytest.mark.parametrize(
    "value",
    [
        *("0644", "1.0", "1e3", "0x1f", ".5", "+1", "1_000", ".inf", "12:30", "2026-01-01"),
        *("yes", "No", "on", "True", "NULL"),
        *("&a x", "*a", "!!str x", "|", ">", "{a: 1}", "[1]", "@x", "`x", "%x", "? x", "- x", "-", "x: y", "x:"),
        *('"open', "'open", '"a" b', r'"\x41"', "b\n  goes on", "\tx", "\x07"),
    ],
)
def test_what_readers_take_for_different_things_is_refused_with_its_line(value: str) -> None:
    with pytest.raises(ValueError, match=r"line [23] has .*, which is beyond the YAML that is read here; JSON is read"):
        read_yaml(f"first: 1\na: {value}")


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: 1\n b: 2",
        "- a\nb: 1",
        "x",
        "a: 1\n---\nb: 1",
        "a:\n    b: 1\n  c: 1",
        "%YAML 1.2",
        "key:value",
    ],
)
def test_a_wrong_structure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        read_yaml(text)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n"])
def test_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nothing stands in it"):
        read_yaml(text)


@pytest.mark.parametrize("opening", ["- " * 100_000, "\n".join(" " * depth + "a:" for depth in range(2000))])
def test_depth_has_a_bound(opening: str) -> None:
    with pytest.raises(ValueError, match="more than 16 levels"):
        read_yaml(opening)


@given(st.one_of(st.text(), st.text("ab:- \n\"'#{}[]&*|>0.", max_size=80)))
def test_any_text_gives_a_value_or_a_value_error(text: str) -> None:
    try:
        value = read_yaml(text)
    except ValueError:
        return
    assert isinstance(value, (dict, list))
