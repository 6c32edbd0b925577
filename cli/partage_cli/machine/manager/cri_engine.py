"""The engine over CRI: by crishim's socket, with the folders that pods need on the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec.structs import replace

from partage_base.cri.errors import PeerRefused
from partage_cli.machine.manager.engine import SandboxSpec
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.places import LOGS
from partage_cli.machine.pods.pod import Container, Pod
from partage_cli.machine.runtime import host
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.exits import ended
from partage_cli.machine.runtime.logs import forget_attempts
from partage_cli.machine.runtime.messages import ContainerState, ListedContainer, Sandbox
from partage_cli.machine.runtime.plans import Dns, Premises, SandboxPlan, container_plan, sandbox_plan

_log: Final = structlog.get_logger()


class CriEngine:
    def __init__(self, runtime: MachineRuntime, root: Path) -> None:
        self._runtime, self._root = runtime, root

    async def sandboxes(self) -> Sequence[Sandbox]:
        return await self._runtime.sandboxes()

    async def containers(self) -> Sequence[ListedContainer]:
        return await self._runtime.containers()

    async def container(self, container_id: str) -> ContainerState:
        return await self._runtime.container(container_id)

    async def ended(self, container_id: str) -> ContainerState | None:
        return await ended(self._runtime, container_id)

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        plan = _replace_dns(self._plan(spec), await asyncio.to_thread(host.dns, self._root))
        try:
            await asyncio.to_thread(host.prepare, spec.pod, plan)
        except OSError as error:
            raise Objection("refused", f"{error.filename}: {error.strerror}; the pod needs this folder") from error
        return await self._runtime.run_sandbox(plan)

    async def create(self, sandbox_id: str, spec: SandboxSpec, container: Container, attempt: int) -> str:
        image = await self._runtime.image(container.image)
        if image is None:
            raise Objection("image", f"image {container.image} is not in the store; pull or load it")
        sandbox = self._plan(spec)
        plan = container_plan(spec.pod, container, sandbox=sandbox, attempt=attempt, image=image)
        container_id = await self._runtime.create(sandbox_id, plan, sandbox)
        await asyncio.to_thread(forget_attempts, Path(sandbox.log_folder) / container.name)
        return container_id

    async def start(self, container_id: str) -> None:
        await self._runtime.start(container_id)

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        await self._runtime.stop(container_id, grace_s=grace_s)

    async def remove(self, container_id: str) -> None:
        await self._runtime.remove(container_id)

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self._runtime.stop_sandbox(sandbox_id)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self._runtime.remove_sandbox(sandbox_id)

    async def address(self, sandbox_id: str) -> str:
        try:
            return await self._runtime.address(sandbox_id)
        except PeerRefused:  # gone meanwhile
            return ""

    async def clean_up(self, uid: str) -> None:
        try:
            await asyncio.to_thread(host.clear, uid, root=str(self._root), logs=str(self._root / LOGS / uid))
        except OSError as error:
            _log.error("what a pod left can't be removed", pod=uid, why=str(error))

    def _plan(self, spec: SandboxSpec) -> SandboxPlan:
        premises = Premises(root=str(self._root))
        return sandbox_plan(
            spec.pod, uid=spec.uid, attempt=spec.attempt, annotations=spec.annotations, premises=premises
        )


def _replace_dns(plan: SandboxPlan, dns: Dns) -> SandboxPlan:
    return replace(plan, premises=replace(plan.premises, dns=dns))


def require_possible(pod: Pod, root: Path) -> None:
    """Raises `Refused` or `DecodeError` for what a pod says and can't have on one machine."""
    sandbox = sandbox_plan(pod, uid="", attempt=0, annotations={}, premises=Premises(root=str(root)))
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        container_plan(pod, each, sandbox=sandbox, attempt=0, image="")
