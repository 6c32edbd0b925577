"""The keys on Kubernetes objects: users write under one prefix, partage under another."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "partage.dev/"
ALLOC_PREFIX: Final = "alloc.partage.dev/"
"""Written by partage alone; admission protects the whole prefix."""

INVENTORY: Final = PREFIX + "inventory"
ALLOCATION: Final = ALLOC_PREFIX + "allocation"
SIGNATURE: Final = ALLOC_PREFIX + "signature"
CONTAINER: Final = ALLOC_PREFIX + "container"
KEYS: Final = PREFIX + "keys"
"""On a node's Lease: the ids of the keys with which the node verifies allocations, sorted, separated by commas."""

VERSIONS: Final = PREFIX + "versions"
"""On a Lease: the versions of its holder and of the daemons beside it, `name=version`, sorted, separated by commas."""
SCHEDULER: Final = PREFIX + "scheduler"
"""On the leading scheduler's Lease: the settings that its decisions depend on."""

GPU_MILLI: Final = PREFIX + "gpu-milli"
GPU_MEMORY: Final = PREFIX + "gpu-memory"
GPUS: Final = PREFIX + "gpus"
GPU_RESOURCES: Final = frozenset((GPU_MILLI, GPU_MEMORY, GPUS))

LIMIT_MILLI: Final = PREFIX + "limit-milli"
AFFINITY: Final = PREFIX + "affinity"
ANTI_AFFINITY: Final = PREFIX + "anti-affinity"
EXCLUSION: Final = PREFIX + "exclusion"
MODELS: Final = PREFIX + "models"
MODELS_NOT: Final = PREFIX + "models-not"
CARDS: Final = PREFIX + "cards"
CARDS_NOT: Final = PREFIX + "cards-not"
POLICY: Final = PREFIX + "policy"
REPEAT_CARDS: Final = PREFIX + "repeat-cards"
BUDGET: Final = PREFIX + "budget"
TOPOLOGY: Final = PREFIX + "topology"
MOVABLE: Final = PREFIX + "movable"
GANG: Final = PREFIX + "gang"
GANG_SIZE: Final = PREFIX + "gang-size"
RESIZE: Final = PREFIX + "resize"
"""New amounts for running containers, as JSON."""
RESIZE_WAIT: Final = PREFIX + "resize-wait"
"""`yes`: the resize waits until it fits."""
RESIZES: Final = frozenset((RESIZE, RESIZE_WAIT))
"""Annotations outside all dialects: the scheduler reads them on bound pods."""
SUSPEND: Final = PREFIX + "suspend"
"""`allowed`: preemption suspends the pod instead of deleting it, where its node can. Outside all dialects."""
SUSPENDED_PODS: Final = PREFIX + "suspended-pods"
"""On a node's Lease, by the node: what became of the pods that it was told to suspend, as JSON by uid."""
RESIZED: Final = ALLOC_PREFIX + "Resized"
"""A condition: the outcome of the resize that it quotes."""
RESIZED_PODS: Final = ALLOC_PREFIX + "resized-pods"
"""On a node's Lease: its pods that were resized, as JSON by uid."""
POLICIES: Final = frozenset(
    (
        LIMIT_MILLI,
        AFFINITY,
        ANTI_AFFINITY,
        EXCLUSION,
        MODELS,
        MODELS_NOT,
        CARDS,
        CARDS_NOT,
        POLICY,
        REPEAT_CARDS,
        BUDGET,
        TOPOLOGY,
        MOVABLE,
    )
)
GANGS: Final = frozenset((GANG, GANG_SIZE))
"""Annotations outside all dialects: the scheduler's queue reads them."""
