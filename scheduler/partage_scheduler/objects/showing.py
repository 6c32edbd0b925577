"""A pod as plugins and dialects are shown it."""

from __future__ import annotations

from partage_plugins.vocabulary import ContainerName, Namespace, Pod, PodContainer, PodName, PodRef, Role
from partage_scheduler.objects.pods import ApiPod
from partage_scheduler.objects.specs import Container


def seen(pod: ApiPod) -> Pod:
    """What they may know; init containers first, in the order in which they start."""
    meta, spec = pod.metadata, pod.spec
    ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=pod.uid)
    first = [_shown(each, role_of(each)) for each in spec.init_containers]
    apps = [_shown(each, "app") for each in spec.containers]
    return Pod(ref=ref, labels=meta.labels, annotations=meta.annotations, containers=(*first, *apps))


def role_of(init: Container) -> Role:
    """What an init container is: one that is always started again stays beside the others."""
    return "sidecar" if init.restart_policy == "Always" else "init"


def _shown(each: Container, role: Role) -> PodContainer:
    amounts = each.resources
    return PodContainer(name=ContainerName(each.name), role=role, limits=amounts.limits, requests=amounts.requests)
