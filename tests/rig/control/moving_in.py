"""What a fresh API server lacks before anyone can work with it: namespaces, permissions, and what controllers make.

Everything here can be done again on a control plane that was stopped and started.
"""

from __future__ import annotations

from typing import Final

from rig.errors import Refused
from rig.identity.people import TEAM
from rig.identity.permissions import manifests
from rig.client.api import Api, Patch
from rig.client.resources import CLUSTER_ROLES, CONFIG_MAPS, SERVICE_ACCOUNTS, path_of
from rig.client.wait import until

_NEEDED_BY_EVERY_POD: Final = (
    SERVICE_ACCOUNTS.at(TEAM, "default"),
    SERVICE_ACCOUNTS.at("default", "default"),
    CONFIG_MAPS.at(TEAM, "kube-root-ca.crt"),
    CONFIG_MAPS.at("default", "kube-root-ca.crt"),
)


def move_in(api: Api, *, pod_admission: bool) -> None:
    """Namespaces, service accounts, who may do what and what pods may say."""
    for manifest in manifests(pod_admission=pod_admission):
        api.patch(path_of(manifest), manifest, Patch.APPLY)


def wait_furnished(api: Api, within_s: float) -> None:
    """Waits for what the controller-manager makes: without it pods are refused and `edit` allows nothing."""
    until("the controller-manager makes what pods need", lambda: _why_not_furnished(api), within_s)


def _why_not_furnished(api: Api) -> str | None:
    try:
        for path in _NEEDED_BY_EVERY_POD:
            api.get(path)
        rules = api.get(CLUSTER_ROLES.at(name="edit"))["rules"]
    except Refused as missing:
        return str(missing)
    return None if rules else "the role edit is empty"
