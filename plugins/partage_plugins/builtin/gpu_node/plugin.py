"""The hooks: settings at the start, one adjustment for each container with a card."""

from __future__ import annotations

import os
from pathlib import Path

from partage_plugins.builtin.gpu_node.attaching import (
    attached,
    attached_by_hand,
    granted_cards,
    named_capabilities,
    require_no_other_request,
    way_for,
)
from partage_plugins.builtin.gpu_node.driver import installed_driver
from partage_plugins.builtin.gpu_node.publishing import OwnKind
from partage_plugins.builtin.gpu_node.raw import capabilities_of, raw_parts
from partage_plugins.builtin.gpu_node.settings import GpuSettings, settings_from
from partage_plugins.hooks import hookimpl
from partage_plugins.vocabulary.containers import Adjustment, Container, Granted
from partage_plugins.vocabulary.gpu import GPU, Card, GpuPart
from partage_plugins.vocabulary.node import NodeContext


class GpuNode:
    """Owns the kind `gpu` on a node."""

    @hookimpl
    def partage_kind(self) -> object:
        """Cards."""
        return GPU

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Reads the settings; a wrong one keeps the plugin, and with it every container with cards, from starting."""
        self._settings: GpuSettings = settings_from(os.environ)
        self._root = Path(context.root)
        self._own_kind = OwnKind(self._root, self._settings.driver_root)

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        """Attaches the granted cards, and refuses a container that would get others beside them."""
        cards, part = granted_cards(granted), granted.part(GPU)
        if not cards or part is None:
            return None
        require_no_other_request(container)
        way = way_for(container, self._settings)
        if way == "raw":
            return self._by_hand(container, cards, part)
        if way == "cdi":
            self._own_kind.ensure(cards, part)
        return attached(way, cards, container, self._settings)

    def _by_hand(self, container: Container, cards: tuple[Card, ...], part: GpuPart) -> Adjustment:
        driver = installed_driver(part, root=self._root, driver_root=self._settings.driver_root)
        capabilities = capabilities_of(named_capabilities(container), self._settings.capabilities)
        return attached_by_hand(raw_parts(cards, driver, capabilities))
