"""kube-controller-manager: service accounts, aggregated roles, workloads, garbage, dead nodes.

Each controller has a service account of its own, as on a real cluster. Asking for them all takes a hundred requests at
the start, so the client's limits are far above the usual 20 a second, which alone would cost five seconds.
"""

from __future__ import annotations

from typing import Final

from rig.control.readiness import answers, trusting
from rig.control.settings import CONTROLLER_MANAGER_PORT, ControlSettings, Flags, Place
from rig.identity.people import CONTROLLER_MANAGER
from rig.machine.components import Component

NAME: Final = "kube-controller-manager"


def controller_manager(place: Place, settings: ControlSettings) -> Component:
    flags = {**_flags(place), **settings.controller_manager_flags}
    ready = answers((str(place.addresses.host), CONTROLLER_MANAGER_PORT), "/healthz", trusting(place.identities.ca))
    return Component(place.program(NAME, flags, settings.feature_gates), ready)


def _flags(place: Place) -> Flags:
    serving = place.identities.server(NAME, ips=[place.addresses.host])
    config = place.kubeconfig(CONTROLLER_MANAGER)
    return {
        "bind-address": str(place.addresses.host),
        "secure-port": str(CONTROLLER_MANAGER_PORT),
        "tls-cert-file": str(serving.certificate),
        "tls-private-key-file": str(serving.key),
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "client-ca-file": str(place.identities.ca),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": str(place.identities.account_keys.key),
        "root-ca-file": str(place.identities.ca),
        "kube-api-qps": "500",
        "kube-api-burst": "1000",
        "authentication-skip-lookup": "true",  # nobody comes through a proxy that vouches for its callers
        "leader-elect": "false",
        "profiling": "false",
        "flex-volume-plugin-dir": str(place.run_folder / "volume-plugins"),  # it makes this folder where there is none
    }
