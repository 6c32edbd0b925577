"""A ResourceQuota as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import force_setattr

from partage_plugins.api.keys import GPU_RESOURCES
from partage_scheduler.objects.base import ApiObject, Object

_PREFIX: Final = "requests."


class QuotaSpec(Object, frozen=True, kw_only=True):
    hard: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: Any = None

    def __post_init__(self) -> None:
        """Keeps limits of cards, by the resource names of pods; a quota with scopes is left to the API server."""
        named = {key.removeprefix(_PREFIX): text for key, text in self.hard.items()}
        ours = {key: text for key, text in named.items() if key in GPU_RESOURCES}
        force_setattr(self, "hard", {} if self.scopes or self.scope_selector else ours)
        force_setattr(self, "scope_selector", None)


class ApiQuota(ApiObject, frozen=True, kw_only=True):
    spec: QuotaSpec = QuotaSpec()
