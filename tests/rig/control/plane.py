"""The control plane of one rig: its four components, started side by side, each killable and restartable by itself.

`start()` waits for nobody, so that other things can be started meanwhile. After `wait_api()` kubelets can register;
after `wait_ready()` users can work. What etcd holds is in the run folder and outlives every component.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from rig.control.components import apiserver
from rig.control.components import controller_manager
from rig.control.components import etcd
from rig.control.components import kube_scheduler
from rig.control.plane import move_in, wait_furnished
from rig.control.settings import APISERVER_PORT, ControlSettings, Place, Programs
from rig.identity.identities import Identities
from rig.identity.people import KUBE_SCHEDULER
from rig.identity.people import Identity
from rig.machine.addresses import Addresses
from rig.machine.components import Component
from rig.client.api import Api


class ControlPlane:
    """Made from where it is, which programs it runs and where its files go."""

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
        self._pod_admission = settings.pod_admission

    @property
    def components(self) -> list[Component]:
        """Those that this control plane has, in the order of their starting."""
        return [each for each in (self.etcd, self.apiserver, self.controller_manager, self.scheduler) if each]

    def another_scheduler(self, configured: Mapping[str, Any]) -> Component:
        """For a control plane that was made without one, with these fields in its file; not yet started."""
        place = Place(self.addresses, self.programs, self.run_folder, self.identities)
        client = {"kubeconfig": place.kubeconfig(KUBE_SCHEDULER), **configured.get("clientConnection", {})}
        fields = {**configured, "clientConnection": client}
        return kube_scheduler(place, ControlSettings(kube_scheduler_configuration=fields))

    def start(self) -> None:
        """Starts etcd and the API server, which look for each other by themselves."""
        self.etcd.start()
        self.apiserver.start()
        self._to_start = self._of_api()

    def wait_api(self) -> None:
        """Returns once the API server serves; the others are started then, for they'd end or pause before."""
        self.etcd.wait_ready()
        self.apiserver.wait_ready()
        while self._to_start:
            self._to_start.pop(0).start()

    def wait_ready(self, within_s: float = 60.0) -> None:
        """Returns once everything serves, namespaces and permissions are there, and a pod can be created."""
        self.wait_api()
        with closing(self.api(self.identities.admin)) as api:
            move_in(api, pod_admission=self._pod_admission)
            for component in self._of_api():
                component.wait_ready()
            if self.controller_manager is not None:
                wait_furnished(api, within_s)

    def stop(self) -> None:
        """Ends everything, etcd last. It can be started again, with what etcd held."""
        for component in reversed(self.components):
            component.stop()

    def api(self, identity: Identity) -> Api:
        """The API server, as that identity; closed by the caller."""
        return Api(self.server, self.identities, identity)

    def _of_api(self) -> list[Component]:
        """What needs the API server to start at all."""
        return self.components[2:]
