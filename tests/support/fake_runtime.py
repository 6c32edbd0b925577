"""A container runtime that has what a test says, and kubelet's device manager that gave what a test says.

`runtime.client` calls the runtime in this process; `support.splice.sockets.RuntimeSocket` serves it to other processes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from partage_base.cri import (
    CriError,
    GivenDevice,
    ListedContainer,
    PeerAway,
    PodResources,
    RuntimeClient,
    RuntimeConfig,
    ServedContainer,
    UnaryClient,
)
from partage_base.cri.runtime import EXITED, POD_UID_LABEL, RUNNING
from support import wire


class InProcess(UnaryClient):
    """A client whose peer is a function of the method and the request."""

    def __init__(self, answer: Callable[[str, bytes], bytes]) -> None:
        super().__init__(Path("/nonexistent"))
        self._answer = answer
        self.asked: list[tuple[str, bytes]] = []

    async def call(self, method: str, request: bytes, *, deadline_s: float, repeatable: bool = True) -> bytes:
        assert deadline_s > 0
        self.asked.append((method, request))
        answer = self._answer(method, request)
        await asyncio.sleep(0)
        return answer


class FakeRuntime:
    """Answers calls of CRI from its state alone."""

    def __init__(self) -> None:
        self.listed: dict[str, ListedContainer] = {}
        self.pids: dict[str, int] = {}
        """First processes of containers, by their ids; of others it does not tell."""
        self.powers: dict[str, Iterable[str]] = {}
        """Capabilities of a container's processes, likewise."""
        self.devices: dict[str, Iterable[str] | CriError] = {}
        """A container's CDI devices, likewise; or the error when it is asked about."""
        self.pods: set[str] = set()
        """Uids of pods with a sandbox, besides those with a container."""
        self.handlers: dict[str, str] = {}
        """Handlers of sandboxes."""
        self.gone: set[str] = set()
        """Sandboxes that it does not know; it knows all others."""
        self.setup: RuntimeConfig | CriError = RuntimeConfig()
        """Its configuration, where `may_restore` comes from the version alone; or the error when it is asked for."""
        self.version: tuple[str, str] = ("containerd", "v2.0.0")
        self.away = False
        self.meanwhile: Callable[[], None] | None = None
        """Called once, after the next listing is made and before it is returned."""
        self.created: list[bytes] = []
        """Requests to create a container. They change nothing else, nor do those to stop one."""
        self.stopped: list[str] = []
        self.peer = InProcess(self.answer)
        self.client = RuntimeClient(self.peer)

    def put(  # noqa: PLR0913  a container as it is listed
        self,
        id_: str,
        annotations: Mapping[str, str] | None = None,
        *,
        pod: str = "u",
        container: str = "main",
        sandbox: str = "s",
        exited: bool = False,
    ) -> None:
        self.listed[id_] = ListedContainer(
            id=id_,
            sandbox_id=sandbox,
            name=container,
            pod_uid=pod,
            exited=exited,
            running=not exited,
            annotations=annotations or {},
        )

    def times_asked(self, method: str) -> int:
        """How often it was called in this process."""
        return sum(path.endswith(f"/{method}") for path, _ in self.peer.asked)

    def answer(self, path: str, request: bytes) -> bytes:
        if self.away:
            raise PeerAway("containerd.sock", "is not there")
        answers = {
            "ListContainers": self._listing,
            "ContainerStatus": self._status,
            "ListPodSandbox": self._sandboxes,
            "Status": self._config,
            "Version": self._version,
            "CreateContainer": self._create,
            "StopContainer": self._stop,
        }
        return answers[path.rpartition("/")[2]](request)

    def _listing(self, _request: bytes) -> bytes:
        listing = b"".join(wire.field(1, _container(each)) for each in self.listed.values())
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return listing

    def _status(self, request: bytes) -> bytes:
        id_ = _id_in(request)
        devices = self.devices.get(id_)
        if isinstance(devices, CriError):
            raise devices
        info: dict[str, object] = {}
        if devices is not None:
            info["config"] = {"CDI_devices": [{"name": name} for name in devices]}
        if id_ in self.powers:
            info["runtimeSpec"] = {"process": {"capabilities": {"bounding": [*self.powers[id_]]}}}
        if id_ in self.pids:
            info["pid"] = self.pids[id_]
        return _told("info", info)

    def _create(self, request: bytes) -> bytes:
        self.created.append(request)
        return b""

    def _stop(self, request: bytes) -> bytes:
        self.stopped.append(_id_in(request))
        return b""

    def _sandboxes(self, request: bytes) -> bytes:
        if wanted := wire.all_of(request, 1):
            id_ = _id_in(wanted[0])
            found = {} if id_ in self.gone else {id_: ""}
        else:
            found = {f"s-{uid}": uid for uid in self.pods | {each.pod_uid for each in self.listed.values()}}
        return b"".join(
            wire.field(1, wire.message((1, id_), (2, wire.field(2, uid)), (7, self.handlers.get(id_, ""))))
            for id_, uid in found.items()
        )

    def _config(self, _request: bytes) -> bytes:
        if isinstance(self.setup, CriError):
            raise self.setup
        runtimes = {name: {"runtimeType": program} for name, program in self.setup.programs.items()}
        config: dict[str, object] = {
            "containerd": {"defaultRuntimeName": self.setup.default_handler, "runtimes": runtimes},
            "enableExperimentalRestoreViaCreate": self.setup.restores,
        }
        if self.setup.cdi is not None:
            config |= {"enableCDI": self.setup.cdi, "cdiSpecDirs": self.setup.spec_folders}
        return _told("config", config)

    def _version(self, _request: bytes) -> bytes:
        name, version = self.version
        return wire.message((1, "0.1.0"), (2, name), (3, version), (4, "v1"))


def _id_in(message: bytes) -> str:
    return wire.all_of(message, 1)[0].decode()


def _container(each: ListedContainer) -> bytes:
    state = EXITED if each.exited else RUNNING
    about = wire.message((1, each.id), (2, each.sandbox_id), (3, wire.field(1, each.name)), (6, state))
    annotations = (wire.field(9, wire.pair(*one)) for one in each.annotations.items())
    return about + wire.field(8, wire.pair(POD_UID_LABEL, each.pod_uid)) + b"".join(annotations)


def _told(key: str, value: object) -> bytes:
    """What containerd tells as JSON, beyond the interface."""
    return wire.field(2, wire.pair(key, json.dumps(value)))


class FakePodResources(PodResources):
    """Devices given by kubelet's device manager, as scripted by a test."""

    def __init__(self) -> None:
        super().__init__(UnaryClient(Path("/nonexistent")))
        self.given: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self.resource = "nvidia.com/gpu"
        self.away = False
        self.asked = 0

    async def served(self) -> tuple[ServedContainer, ...]:
        self.asked += 1
        if self.away:
            raise PeerAway("kubelet.sock", "is not there")
        return tuple(
            ServedContainer(
                namespace=namespace,
                pod=pod,
                container=container,
                given=tuple(GivenDevice(self.resource, device) for device in devices),
            )
            for (namespace, pod, container), devices in self.given.items()
        )
