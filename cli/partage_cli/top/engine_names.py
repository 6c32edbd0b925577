"""The names that Docker and Podman give to their containers, which the broker knows by id."""

from __future__ import annotations

import time
from typing import Final

from msgspec.structs import replace

from partage_cli.docker.engine import ENGINES, names
from partage_isolation.wire.messages import BrokerReport, ContainerReport
from partage_oci.words import NAMESPACE
from partage_plugins.api import PodName

_WITHIN_S: Final = 1.0
"""An engine that hangs must not keep the rest from being seen."""
_AGAIN_S: Final = 5.0
"""Engines are asked again for the name of a container that they did not name this long ago."""


class EngineNames:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._asked_s = -_AGAIN_S

    def put_into(self, told: BrokerReport) -> BrokerReport:
        """The report with names in place of ids."""
        return replace(told, containers=tuple(self._named(each) for each in told.containers))

    def _named(self, told: ContainerReport) -> ContainerReport:
        pod = told.pod
        if pod.namespace != NAMESPACE:
            return told
        if pod.uid not in self._names and time.monotonic() - self._asked_s >= _AGAIN_S:
            found = (names(engine, within_s=_WITHIN_S) for engine in ENGINES)
            self._names = {id_: name for each in found for id_, (name, _) in each.items()}
            self._asked_s = time.monotonic()
        return replace(told, pod=replace(pod, name=PodName(self._names.get(pod.uid, pod.name))))
