"""Fields of Kubernetes' pod that are not a field of ours, by their paths without list indices; one table. Pure.

`initContainers` are as `containers`. A field that stands nowhere here and is none of ours is refused as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_CONTAINER: Final = ".spec.containers"
_POD_SECURITY: Final = ".spec.securityContext"
_SECURITY: Final = f"{_CONTAINER}.securityContext"
_MOUNT: Final = f"{_CONTAINER}.volumeMounts"

WITHOUT_MEANING: Final = frozenset(
    (
        ".status",
        *(
            f".metadata.{name}"
            for name in (
                "creationTimestamp",
                "finalizers",
                "generateName",
                "generation",
                "managedFields",
                "ownerReferences",
                "resourceVersion",
                "selfLink",
                "uid",
            )
        ),
        *(
            f".spec.{name}"
            for name in (
                "affinity",
                "automountServiceAccountToken",
                "enableServiceLinks",
                "imagePullSecrets",
                "nodeName",
                "nodeSelector",
                "os",
                "overhead",
                "preemptionPolicy",
                "priority",
                "priorityClassName",
                "readinessGates",
                "schedulingGates",
                "schedulerName",
                "serviceAccount",
                "serviceAccountName",
                "tolerations",
                "topologySpreadConstraints",
            )
        ),
        *(
            f"{_CONTAINER}.{name}"
            for name in (
                "livenessProbe",
                "readinessProbe",
                "resizePolicy",
                "startupProbe",
                "terminationMessagePath",
                "terminationMessagePolicy",
            )
        ),
    )
)

_SAY_PATH: Final = "hostPath, with the files on this machine, or emptyDir"
_TAKE_OUT: Final = "nothing: it would not hold here; take it out"
REFUSED: Final[Mapping[str, str]] = {
    ".spec.activeDeadlineSeconds": "nothing: nothing ends a pod after a time here; take it out",
    ".spec.dnsConfig": "nothing: the machine's own resolv.conf holds; take it out",
    ".spec.dnsPolicy": "Default or ClusterFirst: the machine's own resolv.conf holds",
    ".spec.ephemeralContainers": "nothing: use `partage exec`",
    ".spec.hostAliases": "nothing: names come from the machine; take it out",
    ".spec.hostIPC": "false: partage does not share this with the machine",
    ".spec.hostPID": "false: partage does not share this with the machine",
    ".spec.hostUsers": "true: there are no user namespaces here",
    ".spec.resourceClaims": "partage's own resources in limits, as partage.dev/gpu-milli",
    ".spec.resources": "limits of each container",
    ".spec.setHostnameAsFQDN": "false",
    ".spec.shareProcessNamespace": "false: each container has its own",
    ".spec.subdomain": "nothing: there is no cluster's DNS here",
    **{
        f".spec.volumes.{kind}": _SAY_PATH
        for kind in (
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "configMap",
            "csi",
            "downwardAPI",
            "ephemeral",
            "fc",
            "flexVolume",
            "flocker",
            "gcePersistentDisk",
            "gitRepo",
            "glusterfs",
            "image",
            "iscsi",
            "nfs",
            "persistentVolumeClaim",
            "photonPersistentDisk",
            "portworxVolume",
            "projected",
            "quobyte",
            "rbd",
            "scaleIO",
            "secret",
            "storageos",
            "vsphereVolume",
        )
    },
    ".spec.volumes.emptyDir.sizeLimit": _TAKE_OUT,
    f"{_CONTAINER}.env.valueFrom": "value: nothing keeps secrets and config maps here",
    f"{_CONTAINER}.envFrom": "env: nothing keeps secrets and config maps here",
    f"{_CONTAINER}.lifecycle": "nothing: hooks are not run here; take it out",
    f"{_CONTAINER}.resources.claims": "partage's own resources in limits, as partage.dev/gpu-milli",
    f"{_CONTAINER}.restartPolicy": "the pod's restartPolicy: it is one for all containers here",
    f"{_CONTAINER}.stdinOnce": "false: take it out",
    f"{_CONTAINER}.volumeDevices": "volumeMounts",
    f"{_MOUNT}.mountPropagation": "None",
    f"{_MOUNT}.recursiveReadOnly": "readOnly",
    f"{_MOUNT}.subPath": "a volume of its own, with that path",
    f"{_MOUNT}.subPathExpr": "a volume of its own, with that path",
    f"{_POD_SECURITY}.fsGroup": _TAKE_OUT,
    f"{_POD_SECURITY}.fsGroupChangePolicy": _TAKE_OUT,
    f"{_POD_SECURITY}.supplementalGroups": _TAKE_OUT,
    f"{_POD_SECURITY}.sysctls": _TAKE_OUT,
    **{
        f"{place}.{name}": allowed
        for place in (_SECURITY, _POD_SECURITY)
        for name, allowed in {
            "allowPrivilegeEscalation": "true: it is not kept from it here; take it out",
            "appArmorProfile": _TAKE_OUT,
            "procMount": "Default",
            "runAsNonRoot": "runAsUser instead, with a number that is not 0",
            "seccompProfile": "type: Unconfined; another one would not hold here",
            "seLinuxOptions": _TAKE_OUT,
            "windowsOptions": _TAKE_OUT,
        }.items()
    },
}

APART: Final = frozenset(
    (
        ".metadata.labels",
        ".metadata.annotations",
        f"{_CONTAINER}.resources.limits",
        f"{_CONTAINER}.resources.requests",
    )
)
"""Mappings whose keys are the user's own."""

_AS_IT_IS: Final[Mapping[str, tuple[Any, ...]]] = {
    ".spec.dnsPolicy": ("Default", "ClusterFirst"),
    ".spec.hostIPC": (False,),
    ".spec.hostPID": (False,),
    ".spec.hostUsers": (True,),
    ".spec.setHostnameAsFQDN": (False,),
    ".spec.shareProcessNamespace": (False,),
    f"{_CONTAINER}.stdinOnce": (False,),
    f"{_MOUNT}.mountPropagation": ("None",),
    f"{_SECURITY}.allowPrivilegeEscalation": (True,),
    f"{_SECURITY}.procMount": ("Default",),
    f"{_SECURITY}.runAsNonRoot": (False,),
    f"{_POD_SECURITY}.runAsNonRoot": (False,),
    f"{_SECURITY}.seccompProfile": ({"type": "Unconfined"},),
    f"{_POD_SECURITY}.seccompProfile": ({"type": "Unconfined"},),
}


def holds_anyway(field: str, value: object) -> bool:
    """What is said is how it is here without it."""
    return any(value is each or (type(value) is type(each) and value == each) for each in _AS_IT_IS.get(field, ()))
