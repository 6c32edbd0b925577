"""Dialects beside each other: one pod speaks one of them, and each can be left out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from partage_dialects.settings import settings_from
from partage_plugins.api import GPU
from partage_plugins.errors import DialectConflict
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.testing.examples import pod
from partage_scheduler.decision import Ledger
from support.dialect_rows import all_plugins

NATIVE = {"partage.dev/gpu-milli": "500"}
V1 = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0", "kubeshare/gpu_mem": "1073741824"}


@pytest.mark.parametrize("resources", [{"partage.dev/gpu-memory": "1Gi"}, NATIVE])
def test_two_dialects_in_one_pod_are_refused_naming_both(resources: Mapping[str, str]) -> None:
    framework = SchedulerFramework(all_plugins(), Ledger())
    with pytest.raises(DialectConflict) as refusal:
        framework.requests(pod(resources, annotations=V1))
    assert "in two dialects, kubeshare-v1-dialect and native-dialect; use one of them" in str(refusal.value)


def test_a_dialect_that_is_blocked_is_not_read_and_the_others_are() -> None:
    framework = SchedulerFramework(all_plugins(PARTAGE_PLUGINS_BLOCK="kubeshare-v1-dialect"), Ledger())
    assert not framework.requests(pod(annotations=V1)).kinds
    assert framework.requests(pod(NATIVE, annotations=V1)).kinds == {GPU.name}


@pytest.mark.parametrize("reader", ["kubelet", "whole", "hami"])
def test_one_system_reads_the_word_that_several_use(reader: str) -> None:
    assert settings_from({"PARTAGE_NVIDIA_GPU": reader}).nvidia_gpu == reader


def test_kubelet_reads_that_word_unless_another_is_named_and_a_wrong_name_is_refused() -> None:
    assert settings_from({}).nvidia_gpu == "kubelet"
    with pytest.raises(ValueError, match="PARTAGE_NVIDIA_GPU is 'volcano'; allowed: kubelet, whole, hami"):
        settings_from({"PARTAGE_NVIDIA_GPU": "volcano"})
