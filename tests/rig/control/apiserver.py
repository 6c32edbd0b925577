"""kube-apiserver with what a real cluster has on: TLS, RBAC, the Node authorizer, NodeRestriction, token issuing.

Nobody is anonymous, so readiness is asked with a certificate. Kubelets are checked by the cluster's authority and see a
certificate themselves. There is no kube-proxy: the service address in its certificate leads nowhere by itself.
"""

from __future__ import annotations

from typing import Final

from rig.control.readiness import answers, trusting
from rig.control.settings import APISERVER_PORT, ETCD_PORT, ControlSettings, Flags, Place
from rig.identity.identities import Identities
from rig.identity.people import ADMIN, KUBELET_CLIENT
from rig.machine.addresses import SERVICES
from rig.machine.components import Component

NAME: Final = "kube-apiserver"
_SERVICE_NAMES: Final = tuple(f"kubernetes{rest}" for rest in ("", ".default", ".default.svc"))


def apiserver(place: Place, settings: ControlSettings) -> Component:
    flags = {**_flags(place), **_admission(settings), **settings.apiserver_flags}
    context = trusting(place.identities.ca, place.identities.certified(ADMIN))
    ready = answers((str(place.addresses.host), APISERVER_PORT), "/readyz", context)
    return Component(place.program(NAME, flags, settings.feature_gates), ready)


def _flags(place: Place) -> Flags:
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
        **_tls(place),
        **_accounts(place.identities),
        **_kubelets(place.identities),
    }


def _storage(place: Place) -> Flags:
    client = place.identities.etcd_client(NAME)
    return {
        "etcd-servers": place.url(ETCD_PORT),
        "etcd-cafile": str(place.identities.etcd_ca),
        "etcd-certfile": str(client.certificate),
        "etcd-keyfile": str(client.key),
    }


def _tls(place: Place) -> Flags:
    serving = place.identities.server(NAME, ips=[place.addresses.host, SERVICES[1]], names=_SERVICE_NAMES)
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
    """Logs and exec: the API server calls the kubelet, each checks the other."""
    client = identities.certified(KUBELET_CLIENT)
    return {
        "kubelet-certificate-authority": str(identities.ca),
        "kubelet-client-certificate": str(client.certificate),
        "kubelet-client-key": str(client.key),
        "kubelet-preferred-address-types": "InternalIP",
    }


def _admission(settings: ControlSettings) -> Flags:
    """Without a controller-manager no service account is ever made, and every pod would be refused for lack of one."""
    return {} if settings.controller_manager else {"disable-admission-plugins": "ServiceAccount"}
