"""Kubernetes objects as far as we read and write them. Unknown fields are ignored, empty ones not written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec


class _Object(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of objects; fields are in Kubernetes' camel case: `resource_version` is `resourceVersion`."""


class Meta(_Object, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class Node(_Object, frozen=True, kw_only=True):
    metadata: Meta = Meta()


class LeaseSpec(_Object, frozen=True, kw_only=True):
    """Holder, acquire time and duration; times as `micro_time` writes them."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(_Object, frozen=True, kw_only=True):
    """A heartbeat, or a lock."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(_Object, frozen=True, kw_only=True):
    """The object of an event."""

    kind: str
    name: str
    api_version: str = ""
    namespace: str = ""
    uid: str = ""


class ObjectEvent(_Object, frozen=True, kw_only=True):
    """An event about an object, for people."""

    metadata: Meta
    involved_object: ObjectReference
    reason: str
    message: str
    type: str
    """`Normal` or `Warning`."""
    action: str
    event_time: str
    """As `micro_time` writes it."""
    reporting_component: str
    reporting_instance: str


def micro_time(moment: datetime) -> str:
    """A time of Leases and events: always with microseconds, which the API server requires."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
