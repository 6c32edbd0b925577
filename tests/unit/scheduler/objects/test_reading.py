"""API objects are read as far as needed; content that the API server never writes gives one clear error."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from partage_base.kube.answers import decoded
from partage_base.kube.errors import MalformedResponse
from partage_base.kube.pages import page_of
from partage_scheduler.objects import (
    ApiClaim,
    ApiCsiNode,
    ApiLease,
    ApiNamespace,
    ApiNode,
    ApiPod,
    ApiStorageClass,
    ApiVolume,
    seen,
)
from unit.scheduler.pods_written import FULL_POD


def read(found: object, type_: Any = ApiPod) -> Any:
    return decoded("GET /it", json.dumps(found).encode(), type_)


def test_plugins_are_shown_what_the_user_wrote_with_containers_as_they_start() -> None:
    asked = {"limits": {"partage.dev/gpu-milli": "500"}, "requests": {"cpu": "1"}, "variables": ["MY_GPU_LIMIT"]}
    assert json.loads(msgspec.json.encode(seen(read(FULL_POD)))) == {
        "ref": {"namespace": "team-a", "name": "train-0", "uid": "u-1"},
        "labels": {"app": "train", "rev": "3"},
        "annotations": {"partage.dev/affinity": "red"},
        "containers": [
            {"name": "log", "role": "sidecar", "limits": {}, "requests": {"cpu": "100m"}, "variables": []},
            {"name": "fetch", "role": "init", "limits": {}, "requests": {}, "variables": []},
            {"name": "main", "role": "app", **asked},
        ],
    }


def test_of_its_variables_few_are_kept_and_only_names_that_speak_of_a_gpu() -> None:
    names = ["HOME", *(f"GPU_{number}" for number in range(9)), "GPU_" + "X" * 999]
    found = read(
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "env": [{"name": n} for n in names]}]}}
    )
    assert seen(found).containers[0].variables == tuple(f"GPU_{number}" for number in range(8))


def test_a_pod_with_next_to_nothing_is_read_too() -> None:
    found = read({"metadata": {"name": "p", "creationTimestamp": None}})
    assert (found.node, found.priority, found.is_going, found.is_terminal) == ("", 0, False, False)
    assert seen(found).containers == ()


def test_what_else_there_is_is_read() -> None:
    node = read(
        {
            "metadata": {"name": "n1", "labels": {"a": "b"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "…"}]},
            "status": {"allocatable": {"cpu": "8"}, "images": [{"names": None}, {"names": ["i:1"], "sizeBytes": 5}]},
        },
        ApiNode,
    )
    assert (node.name, node.spec.unschedulable, node.spec.taints[0].key) == ("n1", True, "k")
    assert node.status.images[1].size_bytes == 5
    volume = {"metadata": {"name": "v"}, "spec": {"csi": {"driver": "d", "volumeHandle": "h"}, "capacity": {}}}
    assert read(volume, ApiVolume).spec.csi.volume_handle == "h"
    claim = {"metadata": {"name": "c", "namespace": "n"}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    assert read(claim, ApiClaim).spec.volume_name == "v"
    assert read({"metadata": {"name": "c"}}, ApiStorageClass).volume_binding_mode == "Immediate"
    assert not read({"metadata": {"name": "n1"}, "spec": {"drivers": None}}, ApiCsiNode).spec.drivers
    drivers = {"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}}
    assert read(drivers, ApiCsiNode).spec.drivers[0].allocatable.count == 3
    assert read({"metadata": {"name": "n", "labels": {"a": "b"}}}, ApiNamespace).metadata.labels == {"a": "b"}
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": None, "renewTime": "2026-01-01T00:00:00.000000Z"}}
    assert read(lease, ApiLease).spec.holder_identity is None


def test_a_word_that_kubernetes_learns_later_makes_no_list_unreadable() -> None:
    new = {"metadata": {"name": "p"}, "spec": {"tolerations": [{"operator": "Gt", "key": "k", "value": "1"}]}}
    page = page_of("GET /pods", json.dumps({"items": [new, FULL_POD]}).encode(), ApiPod)
    assert [each.name for each in page.items or ()] == ["p", "train-0"]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"metadata": {}}, r"missing required field `name` - at `\$.metadata`"),
        ({"metadata": {"name": 3}}, r"\$.metadata.name"),
        ({"metadata": {"name": "p"}, "spec": {"tolerations": {}}}, r"\$.spec.tolerations"),
        ({"metadata": {"name": "p"}, "spec": {"priority": 2**31}}, r"\$.spec.priority"),
        (
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "ports": [{"hostPort": "1"}]}]}},
            "hostPort",
        ),
        ({"metadata": {"name": "p", "labels": {"a": 1}}}, r"\$.metadata.labels"),
        ([], r"Expected `object`"),
    ],
)
def test_what_is_malformed_is_one_error_that_names_the_place(wrong: object, where: str) -> None:
    with pytest.raises(MalformedResponse, match=where):
        read(wrong)


def test_what_is_read_can_be_written_and_read_again() -> None:
    found = read(FULL_POD)
    assert read(json.loads(msgspec.json.encode(found))) == found
