"""Docker's settings keep others' entries, and return to the old bytes once ours are removed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.docker.daemon_json import Before, Registration, forgetting, registered, unregistered
from partage_plugins.errors import Refused

PLAIN = Registration(program="/opt/partage-oci")
ALL = Registration(
    program="/opt/partage-oci", is_default=True, resources=("partage-milli=2000", "partage-memory-mib=8192")
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
contents = st.fixed_dictionaries(
    {},
    optional={
        "runtimes": st.dictionaries(st.text().filter(lambda name: name != "partage"), values, max_size=3),
        "default-runtime": st.text().filter(lambda name: name != "partage"),
        "node-generic-resources": st.lists(st.text().filter(lambda text: not text.startswith("partage-"))),
        "storage-driver": values,
    },
)
texts = contents.map(lambda content: json.dumps(content, indent=7).encode()) | st.sampled_from((None, b"", b" \n"))


def read(content: bytes | None) -> Any:
    return json.loads(content or b"{}")


@given(now=texts, wanted=st.sampled_from((PLAIN, ALL)))
def test_ours_stands_beside_what_was_there_and_goes_without_a_trace(now: bytes | None, wanted: Registration) -> None:
    written, before = registered(now, wanted, None)
    content, old = read(written), read((now or b"").strip())
    assert content["runtimes"] == {**old.get("runtimes", {}), "partage": {"path": "/opt/partage-oci"}}
    assert content.get("default-runtime") == ("partage" if wanted.is_default else old.get("default-runtime"))
    assert content.get("storage-driver", None) == old.get("storage-driver", None)
    assert set(wanted.resources) <= set(content.get("node-generic-resources", ()))
    assert unregistered(written, before) == now


@given(now=contents, wanted=st.lists(st.sampled_from((PLAIN, ALL)), min_size=1, max_size=4), added=values)
def test_what_somebody_changed_meanwhile_stays(now: dict[str, Any], wanted: list[Registration], added: Any) -> None:
    content, before = json.dumps(now).encode(), None
    for each in wanted:
        content, before = registered(content, each, before)
        content = json.dumps({**read(content), "added": added}).encode()
    assert before is not None
    kept = {name: value for name, value in now.items() if value or name in {"storage-driver", "default-runtime"}}
    assert read(unregistered(content, before)) == {**kept, "added": added}


@given(now=texts, steps=st.lists(st.tuples(st.sampled_from((PLAIN, ALL, None)), st.booleans()), min_size=1, max_size=6))
def test_killed_between_keeping_and_writing_it_is_still_undone_to_the_byte(
    now: bytes | None, steps: list[tuple[Registration | None, bool]]
) -> None:
    """Each step saves what undoes it and then writes, unless it is killed in between; None removes our entries."""
    content, before = now, None
    for wanted, is_killed in steps:
        if wanted is not None:
            written, before = registered(content, wanted, before)
        elif before is not None:
            written, before = forgetting(content, before)
        else:
            continue
        content = content if is_killed else written
    assert before is None or unregistered(content, before) == now


def test_registered_again_it_is_still_undone_to_the_byte() -> None:
    first, before = registered(b'{ "debug":true }', PLAIN, None)
    second, before = registered(first, ALL, before)
    assert registered(second, ALL, before) == (second, before)
    assert unregistered(second, before) == b'{ "debug":true }'


@given(now=texts, wanted=st.sampled_from((PLAIN, ALL)), added=st.sampled_from(({}, {"added": 1})))
def test_dockerd_is_told_to_forget_ours_before_the_file_is_as_it_was(
    now: bytes | None, wanted: Registration, added: dict[str, int]
) -> None:
    content, before = registered(now, wanted, None)
    if added:
        content = json.dumps({**read(content), **added}).encode()
    after = unregistered(content, before)
    for _ in range(2):
        content, before = forgetting(content, before)
        told = read(content)
        assert "partage" not in told["runtimes"]
        assert told["default-runtime"] == read((now or b"").strip()).get("default-runtime", "runc")
        assert unregistered(content, before) == after


def test_dockerd_is_told_of_a_default_that_is_no_longer_ours() -> None:
    first, before = registered(None, ALL, None)
    content, before = registered(first, PLAIN, before)
    assert read(content)["default-runtime"] == "runc"
    assert unregistered(content, before) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "allowed: an object"),
        (b'{"runtimes":[]}', "runtimes is []"),
        (b'{"node-generic-resources":"a=1"}', 'node-generic-resources is "a=1"'),
        (b'{"a":1,"a":2}', "'a' stands twice"),
        (b'{"runtimes":{"partage":{"path":"/usr/bin/mine"}}}', "take it out there first"),
        (b"[" * 100_000, "no JSON"),
        (b'{"a":"\\ud800"}', "no JSON"),
        (b'{"a":1e400}', "no JSON"),
        (b" " * (1 << 20) + b"{}", "bytes; allowed"),
    ],
)
def test_what_can_t_be_changed_safely_is_not_touched(content: bytes, why: str) -> None:
    with pytest.raises(Refused, match="(?s)" + why.replace("[", r"\[")):
        registered(content, PLAIN, None)


def test_a_file_that_was_removed_meanwhile_stays_away() -> None:
    _, before = registered(None, PLAIN, None)
    assert unregistered(None, before) is None
    assert isinstance(before, Before)
