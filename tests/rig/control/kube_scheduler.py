"""kube-scheduler, configured by a file, so that a test can put extenders or profiles into it."""

from __future__ import annotations

import json
from typing import Any, Final

from rig.control.readiness import answers, trusting
from rig.control.settings import KUBE_SCHEDULER_PORT, ControlSettings, Flags, Place
from rig.identity.identities import write_private
from rig.identity.people import KUBE_SCHEDULER
from rig.machine.components import Component

NAME: Final = "kube-scheduler"


def kube_scheduler(place: Place, settings: ControlSettings) -> Component:
    flags = {**_flags(place, settings), **settings.kube_scheduler_flags}
    ready = answers((str(place.addresses.host), KUBE_SCHEDULER_PORT), "/readyz", trusting(place.identities.ca))
    return Component(place.program(NAME, flags, settings.feature_gates), ready)


def configuration(kubeconfig: str, settings: ControlSettings) -> dict[str, Any]:
    """The KubeSchedulerConfiguration. Nobody else schedules here, so there is no leader to elect."""
    ours = dict(settings.kube_scheduler_configuration)
    connection = {"kubeconfig": kubeconfig, **ours.pop("clientConnection", {})}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        **ours,
    }


def _flags(place: Place, settings: ControlSettings) -> Flags:
    serving = place.identities.server(NAME, ips=[place.addresses.host])
    own = place.kubeconfig(KUBE_SCHEDULER)
    file = place.run_folder / "kube-scheduler.json"
    write_private(file, json.dumps(configuration(own, settings), indent=1).encode())
    return {
        "config": str(file),
        "bind-address": str(place.addresses.host),
        "secure-port": str(KUBE_SCHEDULER_PORT),
        "tls-cert-file": str(serving.certificate),
        "tls-private-key-file": str(serving.key),
        "authentication-kubeconfig": own,
        "authorization-kubeconfig": own,
        "client-ca-file": str(place.identities.ca),
        "authentication-skip-lookup": "true",  # nobody comes through a proxy that vouches for its callers
    }
