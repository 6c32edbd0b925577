"""The hook that both sides share."""

from __future__ import annotations

from partage_plugins.hooks.markers import hookspec
from partage_plugins.vocabulary.kinds import AnyKind


@hookspec
def partage_kind() -> AnyKind | None:
    """Name the kind that this plugin owns, if any.

    Asked once, when the plugin is registered. Every kind has exactly one owner on each side: a second plugin that
    names it is not loaded. Declare one module-level `KindType` and return it from both sides' plugins.

    Returns:
        The kind, or None for a plugin that only adds requests, vetoes or preferences.

    """
    raise NotImplementedError
