"""The programs of a control plane: their flags, and their readiness checks.

etcd does not fsync (`unsafe-no-fsync`): a rig survives the death of its etcd, but need not survive the machine's. Its
CA is not the cluster's, and every client needs a certificate of that CA.

kube-apiserver has the features of a real cluster enabled: TLS, RBAC, the Node authorizer, NodeRestriction, token
issuing. There are no anonymous clients, so readiness checks use a certificate. There is no kube-proxy: the service
address in its certificate is not routed.

kube-controller-manager has a service account for each controller, as on a real cluster. Requesting them all takes a
hundred requests at the start, so its limits are far above the default of 20 a second, which alone would cost five
seconds.

kube-scheduler is configured by a file, so that a test can set extenders or profiles.
"""

from __future__ import annotations

import json
from typing import Any, Final

from rig.control.readiness import answers, trusting
from rig.control.settings import (
    APISERVER_PORT,
    CONTROLLER_MANAGER_PORT,
    ETCD_PEER_PORT,
    ETCD_PORT,
    KUBE_SCHEDULER_PORT,
    ControlSettings,
    Flags,
    Place,
)
from rig.identity.identities import Identities, write_private
from rig.identity.people import ADMIN, CONTROLLER_MANAGER, KUBE_SCHEDULER, KUBELET_CLIENT
from rig.machine.addresses import SERVICES
from rig.machine.components import Component


def etcd(place: Place, settings: ControlSettings) -> Component:
    program = place.program("etcd", {**_etcd_flags(place), **settings.etcd_flags}, {})
    context = trusting(place.identities.etcd_ca, place.identities.etcd_client("readiness"))
    return Component(program, answers((str(place.addresses.host), ETCD_PORT), "/readyz", context))


def _etcd_flags(place: Place) -> Flags:
    serving = place.identities.etcd_server(place.addresses.host)
    clients, peers = place.url(ETCD_PORT), place.url(ETCD_PEER_PORT)
    return {
        "name": "rig",
        "data-dir": str(place.run_folder / "etcd"),
        "unsafe-no-fsync": "true",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"rig={peers}",
        **_etcd_tls("", place, str(serving.certificate), str(serving.key)),
        **_etcd_tls("peer-", place, str(serving.certificate), str(serving.key)),
        # A single member elects itself without waiting for peers. Each heartbeat costs CPU time, even when idle.
        "heartbeat-interval": "250",
        "election-timeout": "1250",
        "log-level": "warn",
    }


def _etcd_tls(prefix: str, place: Place, certificate: str, key: str) -> Flags:
    return {
        f"{prefix}cert-file": certificate,
        f"{prefix}key-file": key,
        f"{prefix}client-cert-auth": "true",
        f"{prefix}trusted-ca-file": str(place.identities.etcd_ca),
    }


_SERVICE_NAMES: Final = tuple(f"kubernetes{rest}" for rest in ("", ".default", ".default.svc"))


def apiserver(place: Place, settings: ControlSettings) -> Component:
    flags = {**_apiserver_flags(place), **_admission(settings), **settings.apiserver_flags}
    context = trusting(place.identities.ca, place.identities.certified(ADMIN))
    ready = answers((str(place.addresses.host), APISERVER_PORT), "/readyz", context)
    return Component(place.program("kube-apiserver", flags, settings.feature_gates), ready)


def _apiserver_flags(place: Place) -> Flags:
    return {
        "bind-address": str(place.addresses.host),
        "advertise-address": str(place.addresses.host),
        "secure-port": str(APISERVER_PORT),
        "service-cluster-ip-range": str(SERVICES),
        "anonymous-auth": "false",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "profiling": "false",
        **_storage(place),
        **_apiserver_tls(place),
        **_accounts(place.identities),
        **_kubelets(place.identities),
    }


def _storage(place: Place) -> Flags:
    client = place.identities.etcd_client("kube-apiserver")
    return {
        "etcd-servers": place.url(ETCD_PORT),
        "etcd-cafile": str(place.identities.etcd_ca),
        "etcd-certfile": str(client.certificate),
        "etcd-keyfile": str(client.key),
    }


def _apiserver_tls(place: Place) -> Flags:
    serving = place.identities.server("kube-apiserver", ips=[place.addresses.host, SERVICES[1]], names=_SERVICE_NAMES)
    return {
        "client-ca-file": str(place.identities.ca),
        "tls-cert-file": str(serving.certificate),
        "tls-private-key-file": str(serving.key),
    }


def _accounts(identities: Identities) -> Flags:
    return {
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(identities.account_keys.certificate),
        "service-account-signing-key-file": str(identities.account_keys.key),
    }


def _kubelets(identities: Identities) -> Flags:
    """For logs and exec the API server calls kubelet, and both authenticate each other."""
    client = identities.certified(KUBELET_CLIENT)
    return {
        "kubelet-certificate-authority": str(identities.ca),
        "kubelet-client-certificate": str(client.certificate),
        "kubelet-client-key": str(client.key),
        "kubelet-preferred-address-types": "InternalIP",
    }


def _admission(settings: ControlSettings) -> Flags:
    """Without a controller-manager there are no service accounts, and every pod would be rejected for lack of one."""
    return {} if settings.controller_manager else {"disable-admission-plugins": "ServiceAccount"}


def controller_manager(place: Place, settings: ControlSettings) -> Component:
    flags = {**_controller_manager_flags(place), **settings.controller_manager_flags}
    ready = answers((str(place.addresses.host), CONTROLLER_MANAGER_PORT), "/healthz", trusting(place.identities.ca))
    return Component(place.program("kube-controller-manager", flags, settings.feature_gates), ready)


def _controller_manager_flags(place: Place) -> Flags:
    serving = place.identities.server("kube-controller-manager", ips=[place.addresses.host])
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
        "authentication-skip-lookup": "true",  # no caller comes through an authenticating proxy
        "leader-elect": "false",
        "profiling": "false",
        "flex-volume-plugin-dir": str(place.run_folder / "volume-plugins"),  # it creates this folder if it is missing
    }


def kube_scheduler(place: Place, settings: ControlSettings) -> Component:
    flags = {**_kube_scheduler_flags(place, settings), **settings.kube_scheduler_flags}
    ready = answers((str(place.addresses.host), KUBE_SCHEDULER_PORT), "/readyz", trusting(place.identities.ca))
    return Component(place.program("kube-scheduler", flags, settings.feature_gates), ready)


def configuration(kubeconfig: str, settings: ControlSettings) -> dict[str, Any]:
    """The KubeSchedulerConfiguration. There is one scheduler, so there is no leader election."""
    ours = dict(settings.kube_scheduler_configuration)
    connection = {"kubeconfig": kubeconfig, **ours.pop("clientConnection", {})}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        **ours,
    }


def _kube_scheduler_flags(place: Place, settings: ControlSettings) -> Flags:
    serving = place.identities.server("kube-scheduler", ips=[place.addresses.host])
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
        "authentication-skip-lookup": "true",  # no caller comes through an authenticating proxy
    }
