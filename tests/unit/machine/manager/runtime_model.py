"""A container runtime in memory, as the manager's engine: it outlives managers, refuses, hangs, loses what ran.

A `Line` is one manager's way to it. Once it is cut, as by the manager's death, no call of that manager has an effect or
an answer any more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from partage_base.cri.errors import PeerAway, PeerRefused
from partage_cli.machine.manager.engine import SandboxSpec
from partage_cli.machine.pods.pod import Container
from partage_cli.machine.runtime.messages import ContainerState, ListedContainer, Sandbox
from partage_cli.machine.runtime.messages import State as StateName

SOCKET: Final = "/run/partage/crishim.sock"


@dataclass
class OneSandbox:
    id: str
    spec: SandboxSpec
    ready: bool = True


@dataclass
class OneContainer:
    id: str
    sandbox: OneSandbox
    name: str
    attempt: int
    state: StateName = "created"
    exit_code: int | None = None
    reason: str = ""
    started_ns: int = 0
    finished_ns: int = 0
    ends: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])


class Model:
    """What there is; tests look at it and change it."""

    def __init__(self) -> None:
        self.sandboxes: dict[str, OneSandbox] = {}
        self.containers: dict[str, OneContainer] = {}
        self.is_away = False
        self.refuses: Callable[[SandboxSpec, Container, int], str | None] = lambda _spec, _container, _attempt: None
        """crishim's sentence against a container."""
        self.refuses_start: Callable[[OneContainer], str | None] = lambda _container: None
        self.begins: list[tuple[str, str, int]] = []
        """Each container that was started: uid, name, attempt."""
        self._ids = itertools.count()

    def next_id(self, kind: str) -> str:
        return f"{kind}{next(self._ids)}"

    def running(self, name: str = "") -> list[OneContainer]:
        return [each for each in self.containers.values() if each.state == "running" and name in {"", each.name}]

    def exit(self, container: OneContainer, code: int, *, ran_s: float = 0, reason: str = "") -> None:
        container.state, container.exit_code, container.reason = "exited", code, reason
        container.finished_ns = container.started_ns + int(ran_s * 1e9)
        for end in container.ends:
            if not end.done():
                end.set_result(None)

    def power_fails(self) -> None:
        """Nothing runs any more, and the runtime did not see how that ended."""
        for sandbox in self.sandboxes.values():
            sandbox.ready = False
        for container in self.running():
            self.exit(container, 255, reason="Unknown")


class Line:
    """One manager's `Engine`."""

    def __init__(self, model: Model, *, dies_at: int | None = None) -> None:
        self.model = model
        self.calls: list[str] = []
        self._dies_at = dies_at
        self.died = asyncio.Event()

    async def sandboxes(self) -> Sequence[Sandbox]:
        await self._called("sandboxes")
        return [
            Sandbox(
                id=each.id,
                name=each.spec.pod.metadata.name,
                namespace=each.spec.pod.metadata.namespace,
                uid=each.spec.uid,
                attempt=each.spec.attempt,
                ready=each.ready,
                created_ns=0,
                annotations=each.spec.annotations,
                labels={},
            )
            for each in self.model.sandboxes.values()
        ]

    async def containers(self) -> Sequence[ListedContainer]:
        await self._called("containers")
        return [
            ListedContainer(
                id=each.id,
                sandbox_id=each.sandbox.id,
                pod_uid=each.sandbox.spec.uid,
                name=each.name,
                attempt=each.attempt,
                state=each.state,
                created_ns=0,
                image="",
                annotations={},
            )
            for each in self.model.containers.values()
        ]

    async def container(self, container_id: str) -> ContainerState:
        await self._called("container")
        return self._state(container_id)

    async def ended(self, container_id: str) -> ContainerState | None:
        container = self.model.containers.get(container_id)
        if container is not None and container.state == "running":
            end = asyncio.get_running_loop().create_future()
            container.ends.append(end)
            await end
        await self._living()
        return self._state(container_id) if container_id in self.model.containers else None

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        await self._called("run_sandbox", before=True)
        same = [
            each
            for each in self.model.sandboxes.values()
            if (each.spec.uid, each.spec.attempt) == (spec.uid, spec.attempt)
        ]
        assert not same, "two sandboxes of one attempt"
        sandbox = OneSandbox(self.model.next_id("s"), spec)
        self.model.sandboxes[sandbox.id] = sandbox
        await self._called("run_sandbox")
        return sandbox.id

    async def create(self, sandbox_id: str, spec: SandboxSpec, container: Container, attempt: int) -> str:
        await self._called("create", before=True)
        sandbox = self.model.sandboxes[sandbox_id]
        why = self.model.refuses(spec, container, attempt)
        if why is not None:
            raise PeerRefused(SOCKET, 9, why)
        made = OneContainer(self.model.next_id("c"), sandbox, container.name, attempt)
        others = [
            each
            for each in self.model.containers.values()
            if (each.sandbox.spec.uid, each.name, each.attempt) == (spec.uid, made.name, attempt)
        ]
        assert not others, "two containers of one attempt"
        self.model.containers[made.id] = made
        await self._called("create")
        return made.id

    async def start(self, container_id: str) -> None:
        await self._called("start", before=True)
        container = self.model.containers[container_id]
        assert container.sandbox.ready, "started in a sandbox that is stopped"
        assert container.state == "created"
        twins = [
            each for each in self.model.running(container.name) if each.sandbox.spec.uid == container.sandbox.spec.uid
        ]
        assert not twins, "two containers of one name run"
        why = self.model.refuses_start(container)
        if why is not None:
            container.state, container.exit_code, container.reason = "exited", 128, "StartError"
            raise PeerRefused(SOCKET, 2, why)
        container.state, container.started_ns = "running", 1
        self.model.begins.append((container.sandbox.spec.uid, container.name, container.attempt))
        await self._called("start")

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        await self._called("stop", before=True)
        container = self.model.containers.get(container_id)
        if container is not None and container.state == "running":
            self.model.exit(container, 143 if grace_s else 137)
        await self._called("stop")

    async def remove(self, container_id: str) -> None:
        await self._called("remove", before=True)
        found = self.model.containers.get(container_id)
        assert found is None or found.state != "running", "removed while it runs"
        self.model.containers.pop(container_id, None)
        await self._called("remove")

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self._called("stop_sandbox", before=True)
        for each in self.model.running():
            if each.sandbox.id == sandbox_id:
                self.model.exit(each, 137)
        if sandbox_id in self.model.sandboxes:
            self.model.sandboxes[sandbox_id].ready = False
        await self._called("stop_sandbox")

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self._called("remove_sandbox", before=True)
        sandbox = self.model.sandboxes.get(sandbox_id)
        assert sandbox is None or not sandbox.ready, "removed while it is ready"
        self.model.sandboxes.pop(sandbox_id, None)
        self.model.containers = {
            key: each for key, each in self.model.containers.items() if each.sandbox.id != sandbox_id
        }
        await self._called("remove_sandbox")

    async def address(self, sandbox_id: str) -> str:
        await self._called("address")
        return "10.88.0.2" if self.model.sandboxes[sandbox_id].ready else ""

    async def clean_up(self, uid: str) -> None:
        await self._called("clean_up")

    def _state(self, container_id: str) -> ContainerState:
        each = self.model.containers.get(container_id)
        if each is None:
            raise PeerRefused(SOCKET, 5, f"container {container_id} not found")
        return ContainerState(
            state=each.state,
            started_ns=each.started_ns,
            finished_ns=each.finished_ns,
            exit_code=each.exit_code,
            reason=each.reason,
            message="",
            pid=None,
            log_path="",
        )

    async def _called(self, name: str, *, before: bool = False) -> None:
        """A point at which the manager may die: before the runtime does what it is told, or before the answer."""
        await asyncio.sleep(0)
        await self._living()
        self.calls.append(f"{'before' if before else 'after'} {name}")
        if self._dies_at == len(self.calls):
            self.died.set()
            await self._living()
        if self.model.is_away:
            raise PeerAway(SOCKET, "nobody listens")

    async def _living(self) -> None:
        if self.died.is_set():
            await asyncio.Event().wait()
