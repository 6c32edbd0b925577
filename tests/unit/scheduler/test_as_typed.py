"""An amount that is too large is reported as it was typed, if that is known, else as its value."""

from __future__ import annotations

import json

import pytest

from partage_plugins.codecs.native import read_requests
from partage_plugins.errors import DecodeError
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.requests import APPLIED, as_typed
from support.objects import pod

MEMORY = "partage.dev/gpu-memory"


def applied(memory: str, name: str = "main") -> str:
    return json.dumps({"spec": {"containers": [{"name": name, "resources": {"limits": {MEMORY: memory}}}]}})


def capped(annotation: str | None) -> ApiPod:
    """A pod that requests more memory than the API server can represent, as the API server stores it."""
    notes = {} if annotation is None else {APPLIED: annotation}
    return pod("p", limits={MEMORY: "9223372036854775807"}, annotations=notes)


def told(pod: ApiPod) -> str:
    with pytest.raises(DecodeError) as refused:
        read_requests(seen(pod))
    return str(as_typed(refused.value, pod))


def test_what_kubectl_applied_is_told_as_it_was_typed() -> None:
    assert told(capped(applied("999999999Ti"))) == (
        f"quantity: containers.main.limits[{MEMORY}] is '999999999Ti'; "
        "allowed: an amount of memory from 0 to 4Ei, such as 8Gi or 512Mi"
    )


@pytest.mark.parametrize(
    "annotation", [None, "", "{", "[]", "{}", '{"spec": {"containers": 1}}', applied("1Ti", "other"), "[" * 100_000]
)
def test_of_others_it_is_said_that_it_stands_for_more(annotation: str | None) -> None:
    assert "is '9223372036854775807', which stands for whatever is larger; allowed:" in told(capped(annotation))


def test_any_other_amount_is_told_as_it_stands_there() -> None:
    assert "is '4Go'" in told(pod("p", limits={MEMORY: "4Go"}, annotations={APPLIED: applied("5Go")}))
