"""Base types of all API objects: how they are decoded, and their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta as Bounds
from msgspec import Struct

Int32 = Annotated[int, Bounds(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Bounds(ge=-(2**63), le=2**63 - 1)]
"""Integers of the API's widths."""


class Object(Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Fields are spelt as in Kubernetes; unknown ones are ignored, empty ones are not written.

    Quantities are text until they are counted. Values from lists that Kubernetes may extend (operators, effects,
    policies) are plain text too: one object with a new value must not make a whole list undecodable. Code that acts on
    such a value defines what it does with unknown ones.
    """


class Identity(Object, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class ApiObject(Object, frozen=True, kw_only=True):
    metadata: Identity

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Empty for cluster-scoped objects."""
        return self.metadata.namespace


class Meta(Identity, frozen=True, kw_only=True):
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class Labelled(Identity, frozen=True, kw_only=True):
    labels: Mapping[str, str] = {}


class Condition(Object, frozen=True, kw_only=True):
    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
