"""A pod with all fields that the API server can write and that affect where it can run, and some that do not."""

from __future__ import annotations

from typing import Any, Final

from support.objects import PREFERRED, REQUIRED

_TERM: Final = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x", "y"]}]},
    "namespaces": ["b"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["rev"],
}
FULL_POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "train-0",
        "generateName": "train-",
        "namespace": "team-a",
        "uid": "u-1",
        "resourceVersion": "77",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "labels": {"app": "train", "rev": "3"},
        "annotations": {"partage.dev/affinity": "red"},
        "ownerReferences": [
            {"kind": "Job", "name": "train", "uid": "u-0", "controller": True, "apiVersion": "batch/v1"}
        ],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}],
    },
    "spec": {
        "nodeName": "n1",
        "schedulerName": "partage",
        "priority": 1000,
        "preemptionPolicy": "Never",
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                            "matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}],
                        }
                    ]
                },
                PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}],
            },
            "podAffinity": {REQUIRED: [_TERM]},
            "podAntiAffinity": {
                PREFERRED: [
                    {"weight": 3, "podAffinityTerm": {"topologyKey": "rack", "mismatchLabelKeys": ["rev"]}},
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "train"}},
                "minDomains": 3,
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["rev"],
            }
        ],
        "tolerations": [
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "gpu", "value": "true", "effect": "NoSchedule"},
        ],
        "initContainers": [
            {"name": "log", "image": "log:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "fetch", "image": "fetch:1", "resources": {}},
        ],
        "containers": [
            {
                "name": "main",
                "image": "train:3",
                "command": ["train"],
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}],
                "resources": {"limits": {"partage.dev/gpu-milli": "500"}, "requests": {"cpu": "1"}},
                "env": [{"name": "A", "value": "B"}, {"name": "MY_GPU_LIMIT", "value": "B"}],
            }
        ],
        "overhead": {"cpu": "250m"},
        "resources": {"requests": {"memory": "1Gi"}},
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "old", "iscsi": {"iqn": "iqn.2026-01.example:1", "lun": 0, "targetPortal": "10.0.0.2"}},
            {"name": "token", "projected": {"sources": []}},
        ],
        "resourceClaims": [{"name": "accelerator", "resourceClaimTemplateName": "gpu"}],
        "schedulingGates": [{"name": "example.com/quota"}],
        "schedulingGroup": {"podGroupName": "gang"},
        "hostNetwork": False,
        "serviceAccountName": "default",
    },
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n2",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastProbeTime": None}],
        "containerStatuses": [{"name": "main", "ready": False, "allocatedResources": {"cpu": "2"}, "image": "train:3"}],
        "qosClass": "Burstable",
    },
}
