"""The native request dialect as a plugin: `partage.dev/gpu-milli` and its siblings."""

from __future__ import annotations

from collections.abc import Mapping

from partage_plugins.codecs.native import read_asks
from partage_plugins.hooks import hookimpl
from partage_plugins.vocabulary.gpu import GPU
from partage_plugins.vocabulary.names import ContainerName, Kind
from partage_plugins.vocabulary.pods import Pod


class NativeDialect:
    """Reads what a pod asks for under our own prefix."""

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        """GPU requests by container, or None where the pod has none."""
        return {name: {GPU.name: request} for name, request in read_asks(pod).items()} or None
