"""The pluggy markers for hooks, and the entry point groups in which plugins are found."""

from __future__ import annotations

from typing import Final

import pluggy

PROJECT: Final = "partage"
SCHEDULER_GROUP: Final = "partage.scheduler"
NODE_GROUP: Final = "partage.node"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)
