"""No name leads to another object than the intended one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import (
    BadName,
    binding_path,
    events_path,
    lease_path,
    leases_path,
    node_path,
    nodes_path,
    pod_path,
    pod_status_path,
    pods_path,
)


def test_paths_are_those_of_the_api() -> None:
    assert nodes_path() == "/api/v1/nodes"
    assert node_path("ip-10-0-0-1.ec2.internal") == "/api/v1/nodes/ip-10-0-0-1.ec2.internal"
    assert leases_path("s") == "/apis/coordination.k8s.io/v1/namespaces/s/leases"
    assert lease_path("s", "n1") == "/apis/coordination.k8s.io/v1/namespaces/s/leases/n1"
    assert pods_path() == "/api/v1/pods"
    assert pods_path("a") == "/api/v1/namespaces/a/pods"
    assert pod_path("a", "web-0") == "/api/v1/namespaces/a/pods/web-0"
    assert pod_status_path("a", "web-0") == "/api/v1/namespaces/a/pods/web-0/status"
    assert binding_path("a", "web-0") == "/api/v1/namespaces/a/pods/web-0/binding"
    assert events_path() == "/api/v1/events"
    assert events_path("default") == "/api/v1/namespaces/default/events"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a/../b", "A", "a_b", "-a", "a-", "a..b", "a b", "a?x", "a%2f", "a\n", "ü", "a" * 254],
)
@pytest.mark.parametrize(
    "path",
    [
        node_path,
        lambda name: lease_path(name or "/", "n"),
        lambda name: pod_path("a", name),
        lambda name: pods_path(name or "/"),
    ],
)
def test_what_is_no_name_is_refused_in_one_line(path: Callable[[str], str], name: str) -> None:
    with pytest.raises(BadName) as raised:
        path(name)
    assert str(raised.value).isprintable()
    assert "allowed: at most 253 of a-z" in str(raised.value)


@given(name=st.text(max_size=12))
def test_any_text_is_one_segment_or_refused(name: str) -> None:
    try:
        path = node_path(name)
    except BadName:
        return
    assert path.rpartition("/") == ("/api/v1/nodes", "/", name)
    assert name not in {"", ".", ".."}
