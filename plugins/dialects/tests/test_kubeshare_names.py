"""What users' scripts find in their containers, on the node."""

from __future__ import annotations

from typing import Any

import pytest

from partage_dialects.kubeshare_names import KubeShareNames
from partage_plugins.api import Adjustment
from partage_plugins.testing.examples import container

V1, V2 = {"kubeshare/gpu_limit": "1.0"}, {"sharedgpu/gpu_limit": "1.0"}


@pytest.mark.parametrize("said", [{"annotations": V1}, {"labels": V2}], ids=["annotations", "labels"])
def test_a_container_of_kubeshare_knows_its_pod_as_it_does_there(said: dict[str, Any]) -> None:
    assert KubeShareNames().partage_adjust(container(**said)) == Adjustment(env={"POD_NAME": "default/train"})


@pytest.mark.parametrize("said", [{}, {"annotations": V2}, {"labels": V1}])
def test_a_container_of_another_dialect_is_left_alone(said: dict[str, Any]) -> None:
    assert KubeShareNames().partage_adjust(container(**said)) is None


def test_a_variable_that_the_user_set_stays() -> None:
    assert KubeShareNames().partage_adjust(container(annotations=V1, env=(("POD_NAME", b"mine"),))) is None
