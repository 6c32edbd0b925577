"""The hook that the scheduler side and the node side share."""

from __future__ import annotations

from partage_plugins.api.kinds import AnyKind
from partage_plugins.hooks.markers import hookspec


@hookspec
def partage_kind() -> AnyKind | None:
    """Return the kind that this plugin owns, if any.

    Called once, when the plugin is registered. Every kind has exactly one owner on each side: a second plugin that
    claims it is not loaded. Declare one module-level `KindType` and return it from the plugins of both sides.

    Returns:
        The kind, or None for a plugin that only adds requests, vetoes or preferences.
    """
    raise NotImplementedError
