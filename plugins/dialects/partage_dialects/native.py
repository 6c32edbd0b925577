"""The native request dialect as a plugin: `partage.dev/gpu-milli` and related keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partage_plugins.api import keys
from partage_plugins.api.gpu import GPU
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.api.pods import Pod
from partage_plugins.api.words import DialectWords
from partage_plugins.codecs.native import read_asks
from partage_plugins.hooks import hookimpl


class NativeDialect:
    """Reads requests under our own prefix."""

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        """GPU requests by container, or None if the pod has none."""
        return {name: {GPU.name: request} for name, request in read_asks(pod).items()} or None

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        """Without the prefix, since unknown keys below it are refused by name."""
        return (
            DialectWords(
                system="partage",
                where="limits",
                asking=keys.GPU_RESOURCES,
                beside=keys.POLICIES,
                known=keys.GANGS | {keys.SUSPEND},
                remedy=f"Cards are asked for in a container's limits, by {keys.GPU_MILLI} or {keys.GPU_MEMORY}",
            ),
        )
