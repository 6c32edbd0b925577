"""A ResourceQuota as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import force_setattr

from partage_plugins.vocabulary.keys import GPU_RESOURCES
from partage_scheduler.objects.base import ApiObject, Object

_PREFIX: Final = "requests."


class QuotaSpec(Object, frozen=True, kw_only=True):
    hard: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: Any = None

    def __post_init__(self) -> None:
        """What it says of cards is kept; a quota with scopes is for some pods only, and is left to the API server."""
        ours = {key: text for key, text in self.hard.items() if key.removeprefix(_PREFIX) in GPU_RESOURCES}
        force_setattr(self, "hard", {} if self.scopes or self.scope_selector else ours)
        force_setattr(self, "scope_selector", None)


class ApiQuota(ApiObject, frozen=True, kw_only=True):
    spec: QuotaSpec = QuotaSpec()

    @property
    def hard(self) -> Mapping[str, str]:
        """By resource, as pods name it."""
        return {key.removeprefix(_PREFIX): text for key, text in self.spec.hard.items()}
