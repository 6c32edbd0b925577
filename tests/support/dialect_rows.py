"""The conformance rows of dialects, `plugins/dialects/tests/conformance/NAME.yaml`, and all dialects to read them.

A file is a list of rows for the plugin `NAME-dialect`:

    - name: half of a card, and all of it while no other wants it
      pod: {metadata: {...}, spec: {...}}           # as the API server keeps it
      request: {main: {share_milli: 500, limit_milli: 1000, memory_bytes: 1073741824}}

`request` has the fields of `GpuRequest` that differ from their defaults, by container; `budget` names a budget that
several containers share, `{}` is no request. `refused` replaces it with a part of the error message. `gang` is its name
and its size; `nvidia_gpu` sets the owner of `nvidia.com/gpu`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec
import msgspec.yaml

from partage_dialects.settings import NVIDIA_GPU
from partage_plugins.api import GPU, Budgeted, BudgetName, ContainerName, GpuRequest, Kind, Pod
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import blocked_names, installed
from partage_plugins.registry.registry import Registry
from partage_scheduler.objects import ApiPod, seen

FILES: Final = sorted((Path(__file__).parents[2] / "plugins/dialects/tests/conformance").glob("*.yaml"))
_FIELDS: Final = frozenset(GpuRequest.__struct_fields__)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    pod: dict[str, Any]
    request: dict[str, dict[str, Any]] | None = None
    refused: str | None = None
    gang: dict[str, Any] | None = None
    nvidia_gpu: str = "kubelet"

    def __post_init__(self) -> None:
        if (self.request is None) == (self.refused is None):
            raise ValueError("a row says either what is asked for or a part of the refusal")
        if self.refused == "":
            raise ValueError("any refusal has an empty part")

    @property
    def expected(self) -> dict[ContainerName, dict[Kind, object]]:
        return {ContainerName(name): {GPU.name: _ask(said)} for name, said in (self.request or {}).items()}

    @property
    def manifest(self) -> dict[str, Any]:
        named = {"name": "pod", "namespace": "team", "uid": "u"}
        return {**self.pod, "metadata": named | self.pod.get("metadata", {})}

    def read(self) -> Pod:
        """The pod as the scheduler shows it to dialects."""
        return seen(msgspec.convert(self.manifest, ApiPod))


def rows_of(file: Path) -> list[Row]:
    return msgspec.yaml.decode(file.read_bytes(), type=list[Row])


def all_plugins(**environment: str) -> Registry:
    """All installed plugins of a scheduler with these variables."""
    registry = Registry(scheduler_hooks)
    with mock.patch.dict(os.environ, environment):
        report = registry.load(installed(SCHEDULER_GROUP), blocked_names(environment))
    assert not report.faults, report.faults
    return registry


def all_plugins_where(nvidia_gpu: str) -> Registry:
    return all_plugins(**{NVIDIA_GPU: nvidia_gpu})


def _ask(said: dict[str, Any]) -> object:
    fields = {key: value for key, value in said.items() if key != "budget"}
    assert set(fields) <= _FIELDS, f"a request has {', '.join(sorted(_FIELDS))}"
    wanted = msgspec.convert(fields, GpuRequest)
    return Budgeted(budget=BudgetName(said["budget"]), ask=wanted) if "budget" in said else wanted
