"""Claims, volumes and storage classes: what a pod's claims are bound to, or why they are not."""

from __future__ import annotations

from typing import Final

from partage_scheduler.objects import ApiClaim, ApiPod, ApiStorageClass, ApiVolume

BOUND: Final = "Bound"
_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NOT_BOUND: Final = "pod has unbound immediate PersistentVolumeClaims"

ClaimKey = tuple[str, str]
"""Namespace and name."""


def claims_of(pod: ApiPod) -> tuple[ClaimKey, ...]:
    """Keys of the pod's claims, without duplicates."""
    if not pod.spec.volumes:
        return ()
    found: dict[ClaimKey, None] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found[pod.namespace, volume.persistent_volume_claim.claim_name] = None
        elif volume.ephemeral is not None:
            found[pod.namespace, f"{pod.name}-{volume.name}"] = None
    return tuple(found)


class Storage:
    def __init__(self) -> None:
        self.claims: dict[ClaimKey, ApiClaim] = {}
        self.volumes: dict[str, ApiVolume] = {}
        self.classes: dict[str, ApiStorageClass] = {}

    def volume_of(self, key: ClaimKey) -> ApiVolume | None:
        """None if the claim is not bound, or its volume is gone."""
        claim = self.claims.get(key)
        return None if claim is None else self.volumes.get(claim.spec.volume_name)

    def waits_for(self, pod: ApiPod) -> str | None:
        """Why the pod fits no node in the current state of its claims."""
        for key in claims_of(pod):
            why = self._why(pod, key)
            if why is not None:
                return why
        return None

    def _why(self, pod: ApiPod, key: ClaimKey) -> str | None:
        claim, name = self.claims.get(key), key[1]
        if claim is None:
            is_named = any(
                each.persistent_volume_claim is not None and each.persistent_volume_claim.claim_name == name
                for each in pod.spec.volumes
            )
            if is_named:
                return f'persistentvolumeclaim "{name}" not found'
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if not _is_bound(claim):
            return self._why_unbound(claim)
        if claim.spec.volume_name not in self.volumes:
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return None

    def _why_unbound(self, claim: ApiClaim) -> str:
        name = claim.spec.storage_class_name
        class_name = claim.metadata.annotations.storage_class if name is None else name
        found = self.classes.get(class_name)
        if found is None or found.volume_binding_mode != _FIRST_CONSUMER:
            return NOT_BOUND
        return (
            f'persistentvolumeclaim "{claim.name}" of StorageClass "{class_name}" waits for its first consumer, which '
            "this scheduler cannot be: let kube-scheduler place the pod with partage as its extender, or bind the claim"
        )


def _is_bound(claim: ApiClaim) -> bool:
    is_done = claim.status.phase == BOUND or claim.metadata.annotations.bind_completed is not None
    return bool(claim.spec.volume_name) and is_done
