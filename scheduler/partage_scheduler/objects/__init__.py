"""API objects with the fields that the scheduler needs: typed, frozen, cheap to decode and to keep."""

from partage_scheduler.objects.base import Condition, Meta
from partage_scheduler.objects.claims import ApiDeviceClass, ApiResourceClaim
from partage_scheduler.objects.nodes import ApiNode, NodeSpec, NodeStatus, Taint
from partage_scheduler.objects.others import (
    ApiBudget,
    ApiClaim,
    ApiCsiNode,
    ApiLease,
    ApiNamespace,
    ApiQuota,
    ApiStorageClass,
    ApiVolume,
)
from partage_scheduler.objects.pods import ApiPod, gang_of, seen
from partage_scheduler.objects.specs import PodSpec, PodStatus

__all__ = [
    "ApiBudget",
    "ApiClaim",
    "ApiCsiNode",
    "ApiDeviceClass",
    "ApiLease",
    "ApiNamespace",
    "ApiNode",
    "ApiPod",
    "ApiQuota",
    "ApiResourceClaim",
    "ApiStorageClass",
    "ApiVolume",
    "Condition",
    "Meta",
    "NodeSpec",
    "NodeStatus",
    "PodSpec",
    "PodStatus",
    "Taint",
    "gang_of",
    "seen",
]
