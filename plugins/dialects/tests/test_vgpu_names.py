"""A container with a part of a card finds its limits under the names that Volcano's and HAMi's users know."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from partage_dialects.vgpu_names import VgpuNames, names_of
from partage_plugins.api import GPU, CardId, Container, ContainerKey, GpuGrant, GpuPart, Granted, PodRef
from support.gpu_fleet import cards

MIB = 1 << 20
PART = GpuPart(driver="580", cuda="13.0", cards=tuple(cards("GPU-", 4)))
CONTAINER = Container(
    key=ContainerKey("0" * 32),
    pod=PodRef(namespace="team", name="pod", uid="u"),  # type: ignore[arg-type]  # names are texts
    name="main",  # type: ignore[arg-type]
    env=(("CUDA_DEVICE_MEMORY_LIMIT_0", b"999999m"),),
)


def grant(place: int, mib: int, *, share: int = 0, limit: int = 1000) -> GpuGrant:
    return GpuGrant(card=CardId(f"GPU-{place}"), share_milli=share, limit_milli=limit, memory_bytes=mib * MIB)


@pytest.mark.parametrize(
    ("grants", "names"),
    [
        ([grant(0, 1024, limit=300)], {"CUDA_DEVICE_MEMORY_LIMIT_0": "1024m", "CUDA_DEVICE_SM_LIMIT": "30"}),
        ([grant(2, 10)], {"CUDA_DEVICE_MEMORY_LIMIT_0": "10m", "CUDA_DEVICE_SM_LIMIT": "100"}),
        ([grant(2, 10, limit=1)], {"CUDA_DEVICE_MEMORY_LIMIT_0": "10m", "CUDA_DEVICE_SM_LIMIT": "1"}),
        (
            [grant(3, 30, limit=500), grant(1, 10, limit=200)],
            {"CUDA_DEVICE_MEMORY_LIMIT_0": "10m", "CUDA_DEVICE_MEMORY_LIMIT_1": "30m", "CUDA_DEVICE_SM_LIMIT": "20"},
        ),
        (
            [grant(1, 10, limit=200), grant(1, 10, limit=200)],
            {"CUDA_DEVICE_MEMORY_LIMIT_0": "20m", "CUDA_DEVICE_SM_LIMIT": "40"},
        ),
        ([grant(1, 10), grant(1, 10)], {"CUDA_DEVICE_MEMORY_LIMIT_0": "20m", "CUDA_DEVICE_SM_LIMIT": "100"}),
    ],
    ids=["a part", "no cap", "a cap below one percent", "two cards in order", "two on one card", "two without a cap"],
)
def test_names_say_the_memory_of_each_card_and_the_percent_of_the_first(
    grants: list[GpuGrant], names: dict[str, str]
) -> None:
    assert names_of(tuple(grants), PART) == names


def adjusted(*grants: GpuGrant, part: GpuPart | None = PART) -> Mapping[str, str] | None:
    parts = {} if part is None else {GPU.name: part}
    found = VgpuNames().partage_adjust(CONTAINER, Granted(gen=1, grants={GPU.name: grants}, parts=parts))
    return None if found is None else found.env


def test_a_container_with_a_part_is_told_over_what_its_user_says() -> None:
    assert (adjusted(grant(0, 1024)) or {})["CUDA_DEVICE_MEMORY_LIMIT_0"] == "1024m"


def test_whole_cards_and_cards_that_are_not_known_have_no_limits_to_tell() -> None:
    assert adjusted(grant(0, 16 * 1024, share=1000)) is None
    assert adjusted(grant(0, 1024), part=None) is None
    assert adjusted(grant(9, 1024)) is None
    assert adjusted() is None
