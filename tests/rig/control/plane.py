"""The control plane of one rig: its four components, started in parallel, each of which can be killed and restarted.

`start()` does not wait, so that other things can be started meanwhile. After `wait_api()` kubelets can register; after
`wait_ready()` users can work. etcd's data is in the run folder and survives every component.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from rig.client.api import Api
from rig.client.resources import CLUSTER_ROLES, CONFIG_MAPS, SERVICE_ACCOUNTS
from rig.client.wait import until
from rig.control.components import apiserver, controller_manager, etcd, kube_scheduler
from rig.control.settings import APISERVER_PORT, ControlSettings, Place, Programs
from rig.errors import Refused
from rig.identity.identities import Identities
from rig.identity.people import KUBE_SCHEDULER, TEAM, Identity
from rig.identity.permissions import manifests
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean
from rig.machine.components import Component
from rig.patience import PATIENCE_S
from rig.programs.provision import ensure


class ControlPlane:
    """A control plane with its addresses, programs and folder."""

    def __init__(
        self,
        addresses: Addresses,
        programs: Programs,
        run_folder: Path,
        settings: ControlSettings | None = None,
    ) -> None:
        settings = settings or ControlSettings()
        self.identities = Identities(run_folder / "identity")
        place = Place(addresses, programs, run_folder, self.identities)
        self.server = place.url(APISERVER_PORT)
        self.addresses = addresses
        self.programs = programs
        self.run_folder = run_folder
        self.etcd = etcd(place, settings)
        self.apiserver = apiserver(place, settings)
        self.controller_manager = controller_manager(place, settings) if settings.controller_manager else None
        self.scheduler = kube_scheduler(place, settings) if settings.kube_scheduler else None
        self._to_start: list[Component] = []
        self._manifests = manifests(partage=settings.partage, pod_admission=settings.pod_admission)

    @property
    def components(self) -> list[Component]:
        """The existing components, in start order."""
        return [each for each in (self.etcd, self.apiserver, self.controller_manager, self.scheduler) if each]

    def another_scheduler(self, configured: Mapping[str, Any]) -> Component:
        """A scheduler for a control plane without one, with these configuration fields; not started."""
        place = Place(self.addresses, self.programs, self.run_folder, self.identities)
        client = {"kubeconfig": place.kubeconfig(KUBE_SCHEDULER), **configured.get("clientConnection", {})}
        fields = {**configured, "clientConnection": client}
        return kube_scheduler(place, ControlSettings(kube_scheduler_configuration=fields))

    def start(self) -> None:
        """Start etcd and the API server, which find each other by retrying."""
        self.etcd.start()
        self.apiserver.start()
        self._to_start = self._of_api()

    def wait_api(self) -> None:
        """Wait until the API server serves; then start the others, which would exit or back off before."""
        self.etcd.wait_ready()
        self.apiserver.wait_ready()
        while self._to_start:
            self._to_start.pop(0).start()

    def wait_ready(self, within_s: float = PATIENCE_S) -> None:
        """Wait until everything serves, namespaces and permissions exist, and pods can be created."""
        self.wait_api()
        with closing(self.api(self.identities.admin)) as api:
            for manifest in self._manifests:
                api.apply(manifest)
            for component in self._of_api():
                component.wait_ready()
            if self.controller_manager is not None:
                wait_furnished(api, within_s)

    def stop(self) -> None:
        """Stop everything, etcd last. It can be started again with etcd's data."""
        for component in reversed(self.components):
            component.stop()

    def api(self, identity: Identity) -> Api:
        """A client of the API server with that identity; the caller closes it."""
        return Api(self.server, self.identities, identity)

    def _of_api(self) -> list[Component]:
        """Components that can't start without the API server."""
        return self.components[2:]


_NEEDED_BY_EVERY_POD: Final = (
    SERVICE_ACCOUNTS.at(TEAM, "default"),
    SERVICE_ACCOUNTS.at("default", "default"),
    CONFIG_MAPS.at(TEAM, "kube-root-ca.crt"),
    CONFIG_MAPS.at("default", "kube-root-ca.crt"),
)


def wait_furnished(api: Api, within_s: float) -> None:
    """Wait for what the controller-manager creates: without it pods are rejected, and `edit` is an empty role."""
    until("the controller-manager makes what pods need", lambda: _why_not_furnished(api), within_s)


def _why_not_furnished(api: Api) -> str | None:
    try:
        for path in _NEEDED_BY_EVERY_POD:
            api.get(path)
        rules = api.get(CLUSTER_ROLES.at(name="edit"))["rules"]
    except Refused as missing:
        return str(missing)
    return None if rules else "the role edit is empty"


@contextmanager
def control_plane(settings: ControlSettings, *, say: Callable[[str], None] = print) -> Generator[ControlPlane]:
    programs = ensure("etcd", "kubernetes", say=say)
    with slots.claimed(clean) as slot:
        addresses = Addresses(slot.number)
        network.make_bridge(addresses, str(slot.folder))
        control = ControlPlane(addresses, programs, slot.folder, settings)
        try:
            control.start()
            control.wait_ready()
            yield control
        finally:
            for component in control.components:
                component.kill()
