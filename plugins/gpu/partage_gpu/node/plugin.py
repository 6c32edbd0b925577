"""The hooks: in crishim, an adjustment for each container with cards; in the advertiser, discovery of cards.

The two roles share nothing but the kind: crishim never loads discovery, and the advertiser attaches no cards.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from partage_gpu.node.attachment import (
    attached,
    granted_cards,
    named_capabilities,
    require_no_other_request,
    way_for,
)
from partage_gpu.node.driver import DriverFiles
from partage_gpu.node.raw import capabilities_of, raw_parts
from partage_gpu.node.settings import GpuSettings, settings_from
from partage_gpu.node.spec_file import OwnKind
from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.gpu import GPU, GpuPart
from partage_plugins.api.node import DeviceUse, Gauge, NodeContext
from partage_plugins.api.nvidia import VISIBLE, VOID
from partage_plugins.hooks import hookimpl

if TYPE_CHECKING:
    from partage_gpu.discovery.discovery import Discovery


class GpuNode:
    """Owns the kind `gpu` on a node."""

    _discovery: Discovery | None = None
    """Only in the advertiser."""

    @hookimpl
    def partage_kind(self) -> object:
        return GPU

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Reads the settings; an invalid one disables the plugin, so that every container with cards is refused."""
        if context.role == "advertiser":
            self._discovery = _discovery(context)
            return
        self._settings: GpuSettings = settings_from(os.environ)
        root, driver_root, host = Path(context.root), str(context.driver_root), str(context.host)
        self._driver = DriverFiles(root, driver_root, host=host)
        self._own_kind = OwnKind(root, driver_root, host=host)

    @hookimpl
    def partage_stopping(self) -> None:
        """Releases the driver."""
        if self._discovery is not None:
            self._discovery.close()

    @hookimpl
    def partage_discover(self, in_use: Sequence[DeviceUse] | None) -> GpuPart | None:
        return self._discovery.discover(in_use) if self._discovery is not None else None

    @hookimpl
    def partage_samples(self) -> list[Gauge]:
        return self._discovery.samples() if self._discovery is not None else []

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        """Attaches the granted cards, and refuses a container that would get others as well."""
        cards, part = granted_cards(granted), granted.part(GPU)
        if not cards or part is None:
            return None
        require_no_other_request(container)
        way = way_for(container, self._settings)
        if way == "raw":
            capabilities = capabilities_of(named_capabilities(container), self._settings.capabilities)
            parts = raw_parts(cards, self._driver.installed(part, cards), capabilities)
            return Adjustment(env={VISIBLE: VOID}, devices=parts.devices, mounts=parts.mounts)
        if way == "cdi":
            self._own_kind.ensure(cards, part)
        return attached(way, cards, container, self._settings)


def _discovery(context: NodeContext) -> Discovery:
    """Imported here, so that crishim's plugin host does not load it."""
    from partage_gpu.discovery.discovery import Discovery  # noqa: PLC0415
    from partage_gpu.discovery.settings import discovery_settings  # noqa: PLC0415

    return Discovery(context, discovery_settings(os.environ))
