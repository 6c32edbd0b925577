"""How a pod requests cards: every sentence of the contract, and every refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from partage_plugins.api import (
    ContainerName,
    GpuRequest,
    Namespace,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodUid,
    Tags,
)
from partage_plugins.api.topology import Bundle
from partage_plugins.codecs import read_requests
from partage_plugins.errors import DecodeError

Amounts = Mapping[str, str]
GIB = 1 << 30


def pod(annotations: Amounts | None = None, requests: Amounts | None = None, **limits: Amounts) -> Pod:
    """A pod with the limits of each container by name; keys are given without the prefix."""
    containers = tuple(
        PodContainer(name=ContainerName(name), limits=prefixed(amounts), requests=prefixed(requests or {}))
        for name, amounts in limits.items()
    )
    ref = PodRef(namespace=Namespace("default"), name=PodName("p"), uid=PodUid("u"))
    return Pod(ref=ref, annotations=prefixed(annotations or {}), containers=containers)


def prefixed(amounts: Amounts) -> dict[str, str]:
    return {key if "/" in key or key == "cpu" else f"partage.dev/{key}": value for key, value in amounts.items()}


def asked(limits: Amounts, **annotations: str) -> GpuRequest:
    policies = {key.replace("_", "-"): value for key, value in annotations.items()}
    return read_requests(pod(policies, main=limits))[ContainerName("main")]


def refusal(of: Pod) -> DecodeError:
    with pytest.raises(DecodeError) as refused:
        read_requests(of)
    assert len(str(refused.value)) < 600
    return refused.value


ONE = {"gpu-milli": "500"}


@pytest.mark.parametrize(
    ("limits", "count", "share", "memory"),
    [
        pytest.param({"gpu-milli": "500"}, 1, 500, None, id="share alone: its fraction of the memory"),
        pytest.param({"gpu-memory": "8Gi"}, 1, 0, 8 * GIB, id="memory alone: no guarantee"),
        pytest.param({"gpu-milli": "500", "gpu-memory": "8Gi"}, 1, 500, 8 * GIB, id="both"),
        pytest.param({"gpu-milli": "1"}, 1, 1, None, id="the smallest share"),
        pytest.param({"gpu-milli": "1000"}, 1, 1000, None, id="one card up to 1000 milli"),
        pytest.param({"gpu-milli": "3000"}, 3, 1000, None, id="whole multiples say how many cards"),
        pytest.param({"gpu-milli": "3k"}, 3, 1000, None, id="in any spelling of quantities"),
        pytest.param({"gpu-milli": "1500", "gpus": "2"}, 2, 750, None, id="otherwise the number is said"),
        pytest.param({"gpu-milli": "1000", "gpus": "4"}, 4, 250, None, id="totals are divided over the cards"),
        pytest.param({"gpu-memory": "16Gi", "gpus": "2"}, 2, 0, 8 * GIB, id="memory is a total too"),
        pytest.param({"gpu-milli": "512k"}, 512, 1000, None, id="as many cards as a node may have"),
        pytest.param({"gpu-memory": "4611686018427387904"}, 1, 0, 2**62, id="as many bytes as there may be"),
        pytest.param({"gpu-milli": "500", "gpus": "0"}, 1, 500, None, id="0 is as if it were not there"),
        pytest.param({"gpu-milli": "500", "cpu": "x", "nvidia.com/gpu": "?"}, 1, 500, None, id="others' keys"),
    ],
)
def test_amounts(limits: Amounts, count: int, share: int, memory: int | None) -> None:
    request = asked({**limits, "example.com/gpu": "1"})
    assert (request.count, request.share_milli, request.memory_bytes) == (count, share, memory)
    assert request.limit_milli == 1000


@pytest.mark.parametrize(
    ("limits", "path", "value", "allowed"),
    [
        ({"gpu-milli": "NaN"}, "limits[partage.dev/gpu-milli]", "'NaN'", "a whole quantity from 0 to 512000"),
        ({"gpu-milli": "-1"}, "limits[partage.dev/gpu-milli]", "'-1'", "a whole quantity from 0 to 512000"),
        ({"gpu-milli": "0.5"}, "limits[partage.dev/gpu-milli]", "'0.5'", "a whole quantity from 0 to 512000"),
        ({"gpu-milli": "512001"}, "limits[partage.dev/gpu-milli]", "'512001'", "from 0 to 512000"),
        ({"gpu-milli": "1e30"}, "limits[partage.dev/gpu-milli]", "'1e30'", "a whole quantity from 0 to 512000"),
        ({"gpu-milli": "9223372036854775807"}, "limits[partage.dev/gpu-milli]", "'9223372036854775807'", "to 512000"),
        ({"gpu-milli": ""}, "limits[partage.dev/gpu-milli]", "''", "a whole quantity from 0 to 512000"),
        ({"gpu-milli": "1500"}, "limits[partage.dev/gpu-milli]", "1500", "partage.dev/gpus beside it"),
        ({"gpu-milli": "1001", "gpus": "2"}, "limits[partage.dev/gpu-milli]", "1001", "2 cards divide evenly"),
        ({"gpu-milli": "2000", "gpus": "1"}, "limits[partage.dev/gpu-milli]", "2000", "at most 1000 on 1 cards"),
        ({"gpu-memory": "1", "gpus": "2"}, "limits[partage.dev/gpu-memory]", "1", "2 cards divide evenly"),
        ({"gpu-memory": "4611686018427387905"}, "limits[partage.dev/gpu-memory]", "'46116", "from 0 to 4Ei"),
        ({"gpu-memory": "-8Gi"}, "limits[partage.dev/gpu-memory]", "'-8Gi'", "an amount of memory from 0 to 4Ei"),
        ({"gpu-memory": "999999999Ti"}, "limits[partage.dev/gpu-memory]", "'999999999Ti'", "such as 8Gi or 512Mi"),
        ({"gpu-memory": "4Go"}, "limits[partage.dev/gpu-memory]", "'4Go'", "such as 8Gi or 512Mi"),
        ({"gpus": "1"}, "limits[partage.dev/gpus]", "1", "together with partage.dev/gpu-milli"),
        ({"gpus": "513", "gpu-milli": "1"}, "limits[partage.dev/gpus]", "'513'", "from 0 to 512"),
        (
            {"gpu-mili": "1"},
            "limits",
            "'partage.dev/gpu-mili' (did you mean partage.dev/gpu-milli?)",
            "gpu-memory, gpu-milli",
        ),
        ({"": "1"}, "limits", "'partage.dev/'", "partage.dev/ with gpu-memory, gpu-milli, gpus"),
        ({"GPU-MILLI": "0"}, "limits", "'partage.dev/GPU-MILLI'", "partage.dev/ with gpu-memory, gpu-milli, gpus"),
    ],
)
def test_refused_amounts(limits: Amounts, path: str, value: str, allowed: str) -> None:
    refused = refusal(pod(side={}, main=limits))
    assert refused.path == f"containers.main.{path}"
    assert refused.value.startswith(value)
    assert allowed in refused.allowed


@pytest.mark.parametrize(("requests", "limits"), [("8Gi", "8Gi"), ("8192Mi", "8Gi"), ("8589934592", "8Gi"), ("0", "0")])
def test_requests_may_repeat_limits_in_other_words(requests: str, limits: str) -> None:
    read_requests(pod(requests={"gpu-memory": requests}, main={"gpu-memory": limits}))


@pytest.mark.parametrize(
    ("requests", "limits", "path", "allowed"),
    [
        ({"gpu-milli": "400"}, ONE, "requests[partage.dev/gpu-milli]", "the same amount as in limits"),
        ({"gpu-milli": "400"}, {}, "requests[partage.dev/gpu-milli]", "the same amount as in limits"),
        ({"gpu-milli": "half\n"}, ONE, "requests[partage.dev/gpu-milli]", "a quantity such as"),
        ({"gpu-mili": "500"}, ONE, "requests", "partage.dev/ with gpu-memory, gpu-milli"),
    ],
)
def test_requests_may_not_differ_from_limits(requests: Amounts, limits: Amounts, path: str, allowed: str) -> None:
    refused = refusal(pod(requests=requests, main=limits))
    assert refused.path == f"containers.main.{path}"
    assert allowed in refused.allowed
    assert str(refused).isprintable()


def test_a_pod_that_asks_for_nothing_has_no_requests() -> None:
    assert read_requests(pod()) == {}
    assert read_requests(pod(main={}, side={"gpu-milli": "0", "cpu": "1"})) == {}


def test_containers_that_ask_for_nothing_are_left_out() -> None:
    found = read_requests(pod({"limit-milli": "main: 600; side: 200"}, main=ONE, side={}))
    assert {name: request.limit_milli for name, request in found.items()} == {"main": 600}


@pytest.mark.parametrize(
    ("limits", "limit_milli", "limit"),
    [
        (ONE, "500", 500),
        (ONE, "1000", 1000),
        (ONE, " 1k ", 1000),
        ({"gpu-milli": "1500", "gpus": "2"}, "1800", 900),
        ({"gpu-memory": "1Gi"}, "1", 1),
    ],
)
def test_a_limit_is_a_total_over_the_cards(limits: Amounts, limit_milli: str, limit: int) -> None:
    assert asked(limits, limit_milli=limit_milli).limit_milli == limit


@pytest.mark.parametrize(
    ("limits", "limit_milli", "allowed"),
    [
        (ONE, "499", "from 500 (the share) to 1000 on 1 cards"),
        (ONE, "1001", "from 500 (the share) to 1000 on 1 cards"),
        ({"gpu-milli": "1500", "gpus": "2"}, "1498", "from 1500 (the share) to 2000 on 2 cards"),
        ({"gpu-milli": "1500", "gpus": "2"}, "1601", "2 cards divide evenly"),
        ({"gpu-memory": "1Gi"}, "0", "from 1 (the share) to 1000 on 1 cards"),
        (ONE, "-1", "a whole quantity from 0 to 512000"),
        (ONE, "NaN", "a whole quantity from 0 to 512000"),
        (ONE, "achtzig", "a whole quantity from 0 to 512000"),
    ],
)
def test_refused_limits(limits: Amounts, limit_milli: str, allowed: str) -> None:
    refused = refusal(pod({"limit-milli": limit_milli}, main=limits))
    assert refused.path == "partage.dev/limit-milli"
    assert allowed in refused.allowed


def test_the_default_limit_is_the_clusters_but_never_below_the_share() -> None:
    found = read_requests(pod(main=ONE, side={"gpu-milli": "900"}), default_limit_milli=700)
    assert {name: request.limit_milli for name, request in found.items()} == {"main": 700, "side": 900}


def test_every_policy_reaches_the_request() -> None:
    policies: dict[str, Any] = {"affinity": "a", "anti_affinity": "b", "exclusion": "c", "policy": "pack"}
    models = {"models": "NVIDIA H100 80GB HBM3, NVIDIA L4", "models_not": "NVIDIA T4"}
    request = asked(ONE, **policies, **models, cards="GPU-1,MIG-GPU-2/1/0", cards_not="GPU-3")
    assert request.tags == Tags(affinity="a", anti_affinity="b", exclusion="c")
    assert (request.models, request.models_not) == (("NVIDIA H100 80GB HBM3", "NVIDIA L4"), ("NVIDIA T4",))
    assert (request.cards, request.cards_not, request.policy) == (("GPU-1", "MIG-GPU-2/1/0"), ("GPU-3",), "pack")
    assert isinstance(hash(request), int)


@pytest.mark.parametrize("level", ["nvlink", "pcie", "numa"])
def test_all_cards_of_a_container_lie_close_where_that_is_asked_for(level: str) -> None:
    assert asked({"gpu-milli": "2000"}, topology=level).bundles == (Bundle(level, 2),)
    assert asked({"gpu-milli": "500"}, topology=level).bundles == (), "a single card is close to itself"
    assert asked({"gpu-milli": "2000"}, topology=f"main: {level}").bundles == (Bundle(level, 2),)


@pytest.mark.parametrize("text", ["closest", "NUMA", "numa,pcie", "1", "socket"])
def test_a_level_that_is_none_is_refused(text: str) -> None:
    refused = refusal(pod({"topology": text}, main=ONE))
    assert (refused.path, refused.allowed) == ("partage.dev/topology", "one of nvlink, pcie, numa")


def test_cards_that_may_repeat_are_not_asked_to_lie_close() -> None:
    two = {"gpu-milli": "1000", "gpus": "2"}
    refused = refusal(pod({"topology": "numa", "repeat-cards": "yes"}, main=two))
    assert refused.allowed == "without partage.dev/repeat-cards, for container main"
