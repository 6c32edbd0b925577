"""A container's words about cards are read in one way from every source, and refused in the words that were typed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_oci.words import CONTAINER, Asked, asked_of
from partage_plugins.api import GpuRequest
from partage_plugins.codecs.native import read_requests
from partage_plugins.errors import PartageError, Refused

ID = "54593e04" * 8
GIB = 1 << 30


def request(*env: str, memory_bytes: int | None = None, policies: Mapping[str, str] = {}) -> GpuRequest | None:
    """The request, or the error as users see it."""
    asked = asked_of(env, {f"partage.dev/{key}": text for key, text in policies.items()})
    if asked is None:
        return None
    try:
        found = read_requests(asked.pod(ID, memory_bytes=memory_bytes))
    except PartageError as error:
        raise Refused(asked.refusal(error)) from None
    if not found:
        raise asked.in_vain()
    return found[CONTAINER]


def refused(*env: str, policies: Mapping[str, str] = {}) -> str:
    with pytest.raises(Refused) as no:
        request(*env, policies=policies)
    return str(no.value)


def test_one_without_our_words_asks_for_nothing() -> None:
    assert request("PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_GPU_MEMORY_LIMIT=8192", "PARTAGE=1") is None


@pytest.mark.parametrize(
    ("env", "annotations"),
    [
        (("PARTAGE_SHARE=300", "PARTAGE_MEMORY=8Gi"), {}),
        (("PARTAGE_SHARE=300", "PARTAGE_MEMORY=8g"), {}),
        (("DOCKER_RESOURCE_PARTAGE-MILLI=300", "DOCKER_RESOURCE_PARTAGE-MEMORY-MIB=8192"), {}),
        (("PARTAGE_SHARE=300", "NVIDIA_GPU_MEMORY_LIMIT=8192"), {}),
        ((), {"gpu-milli": "300", "gpu-memory": "8Gi"}),
        (("PARTAGE_SHARE=900", "DOCKER_RESOURCE_PARTAGE-MILLI=300", "PARTAGE_MEMORY=8192m"), {}),
        (("DOCKER_RESOURCE_PARTAGE-MILLI=900", "PARTAGE_MEMORY=1g"), {"gpu-milli": "300", "gpu-memory": "8Gi"}),
        (("PARTAGE_SHARE=1", "PARTAGE_SHARE=300", "PARTAGE_MEMORY=8Gi", "PARTAGE_LIMIT="), {}),
    ],
)
def test_all_ways_to_ask_mean_the_same(env: tuple[str, ...], annotations: dict[str, str]) -> None:
    assert request(*env, policies=annotations) == GpuRequest(share_milli=300, memory_bytes=8 * GIB)


@pytest.mark.parametrize(
    ("text", "memory_bytes"),
    [
        ("512m", 512 << 20),
        ("512MB", 512 << 20),
        ("512Mi", 512 << 20),
        ("1.5g", 3 * GIB // 2),
        ("4G", 4 * GIB),
        ("4GiB", 4 * GIB),
        ("2048k", 2 << 20),
        ("1t", 1024 * GIB),
        ("4096b", 4096),
        ("4096", 4096),
    ],
)
def test_memory_is_said_in_dockers_units_and_in_those_of_kubernetes(text: str, memory_bytes: int) -> None:
    found = request(f"PARTAGE_MEMORY={text}")
    assert found is not None
    assert found.memory_bytes == memory_bytes


def test_cards_alone_are_whole_ones() -> None:
    assert request("PARTAGE_CARDS=2") == GpuRequest(count=2, share_milli=1000)
    assert request("PARTAGE_CARDS=2", "PARTAGE_SHARE=600") == GpuRequest(count=2, share_milli=300)


def test_policies_are_those_of_pods() -> None:
    found = request("PARTAGE_SHARE=300", "PARTAGE_LIMIT=500", policies={"models": "NVIDIA L4", "affinity": "team"})
    assert found is not None
    assert (found.limit_milli, found.models, found.tags.affinity) == (500, ("NVIDIA L4",), "team")


def test_memory_that_moves_is_held_against_the_containers_main_memory() -> None:
    words = ("PARTAGE_SHARE=300", "PARTAGE_MEMORY=8g")
    assert "limits.memory" in refused(*words, policies={"movable": "yes"})
    found = request(*words, policies={"movable": "yes"}, memory_bytes=8 * GIB)
    assert found is not None
    assert found.movable


def test_an_empty_word_takes_back_what_an_image_says() -> None:
    assert request("PARTAGE_SHARE=300", "PARTAGE_SHARE=") is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("PARTAGE_SHARE=1500",), "PARTAGE_SHARE is '1500'; allowed: a multiple of 1000, or PARTAGE_CARDS beside it"),
        (("PARTAGE_SHARE=a third",), "PARTAGE_SHARE is 'a third'; allowed: a whole quantity from 0 to"),
        (("PARTAGE_MEMORY=4Gb!",), "PARTAGE_MEMORY is '4Gb!'; allowed: an amount of memory such as 512m, 4g"),
        (("PARTAGE_MEMORY=0.3b",), "PARTAGE_MEMORY is '0.3b'"),
        (("PARTAGE_CARDS=two",), "PARTAGE_CARDS is 'two'; allowed: a whole number from 1 to"),
        (("PARTAGE_CARDS=3", "PARTAGE_SHARE=100"), "PARTAGE_SHARE is '100'; allowed: an amount that 3 cards divide"),
        (("PARTAGE_SHARE=300", "PARTAGE_LIMIT=200"), "PARTAGE_LIMIT is '200'; allowed: from 300 (the share) to 1000"),
        (("PARTAGE_SHARE=0",), "PARTAGE_SHARE=0 asks for no part of a card"),
        (("PARTAGE_LIMIT=200",), "PARTAGE_LIMIT asks for no card by itself; say PARTAGE_SHARE, PARTAGE_MEMORY or"),
        (("DOCKER_RESOURCE_PARTAGE-MILLI=2500",), "DOCKER_RESOURCE_PARTAGE-MILLI is '2500'"),
        (("DOCKER_RESOURCE_PARTAGE-MEMORY-MIB=8g",), "a whole number of MiB"),
        (("PARTAGE_SHARE=300", "NVIDIA_GPU_MEMORY_LIMIT=8g"), "NVIDIA_GPU_MEMORY_LIMIT is '8g'"),
        (("PARTAGE_SHAER=300",), "PARTAGE_SHAER is no word that partage knows; did you mean PARTAGE_SHARE?"),
        (("PARTAGE_X=1",), "PARTAGE_X is no word that partage knows; allowed: PARTAGE_ with CARDS, LIMIT, MEMORY"),
        (("DOCKER_RESOURCE_PARTAGE-MILI=3",), "did you mean DOCKER_RESOURCE_PARTAGE-MILLI?"),
    ],
)
def test_what_can_not_be_is_refused_in_the_word_that_was_typed(words: tuple[str, ...], why: str) -> None:
    assert why in refused(*words)


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("gpu-mili", "300", "partage.dev/gpu-mili is no word that partage knows; did you mean partage.dev/gpu-milli?"),
        ("gpu-milli", "1500", "partage.dev/gpu-milli is '1500'; allowed: a multiple of 1000, or partage.dev/gpus"),
        ("gpus", "1", "partage.dev/gpus is '1'; allowed: together with partage.dev/gpu-milli"),
        ("models", "NVIDIA L4", "partage.dev/models asks for no card by itself"),
        ("gang", "train", "partage.dev/gang is for pods of several containers"),
        ("budget", "pod", "partage.dev/budget is for pods of several containers"),
    ],
)
def test_an_annotation_is_refused_by_its_own_name(key: str, text: str, why: str) -> None:
    assert why in refused(policies={key: text})


@given(
    st.dictionaries(
        st.sampled_from(
            ["PARTAGE_SHARE", "PARTAGE_LIMIT", "PARTAGE_MEMORY", "PARTAGE_CARDS", "DOCKER_RESOURCE_PARTAGE-MILLI"]
        ),
        st.one_of(st.text(max_size=200), st.integers(-5, 70_000).map(str), st.sampled_from(["4g", "1e3", "1.5Gi"])),
    )
)
def test_whatever_is_said_gives_a_request_or_one_printable_line(said: dict[str, str]) -> None:
    try:
        found = request(*(f"{name}={text}" for name, text in said.items()))
    except Refused as no:
        line = str(no)
        assert line.isprintable()
        assert len(line) < 1024
        assert any(name in line for name in said)
        assert "containers." not in line
    else:
        assert (found is None) == (not any(said.values()))


def test_words_that_can_not_be_printed_are_shown_all_the_same() -> None:
    line = refused("PARTAGE_\x1b[2J" + "x" * 5000 + "=1")
    assert line.isprintable()
    assert len(line) < 400


def test_a_container_is_known_by_its_id() -> None:
    asked = asked_of(["PARTAGE_SHARE=300"], {})
    assert isinstance(asked, Asked)
    pod = asked.pod(ID, memory_bytes=None)
    assert (pod.ref.uid, pod.ref.name, pod.ref.namespace) == (ID, ID[:12], "containers")
