"""What the manager needs of the container runtime, as a protocol: pods in, typed answers out.

Each call raises `partage_base.cri.errors.CriError` where the runtime does not answer or says no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from partage_cli.machine.pods.pod import Container, Pod
from partage_cli.machine.runtime.messages import ContainerState, ListedContainer, Sandbox


class SandboxSpec(Struct, frozen=True, kw_only=True):
    """From which a sandbox is made, and which is said again with each of its containers."""

    pod: Pod
    uid: str
    attempt: int
    annotations: Mapping[str, str]


class Engine(Protocol):
    async def sandboxes(self) -> Sequence[Sandbox]: ...

    async def containers(self) -> Sequence[ListedContainer]: ...

    async def container(self, container_id: str) -> ContainerState: ...

    async def ended(self, container_id: str) -> ContainerState | None:
        """Returns once a container that runs has ended; None: it is there no more."""
        ...

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        """Its id; with the folders that it and its containers need."""
        ...

    async def create(self, sandbox_id: str, spec: SandboxSpec, container: Container, attempt: int) -> str:
        """Its id; raises `Objection` where its image is not in the store."""
        ...

    async def start(self, container_id: str) -> None: ...

    async def stop(self, container_id: str, *, grace_s: int) -> None: ...

    async def remove(self, container_id: str) -> None: ...

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Also kills what runs in it; one that is stopped already is fine."""
        ...

    async def remove_sandbox(self, sandbox_id: str) -> None: ...

    async def address(self, sandbox_id: str) -> str: ...

    async def clean_up(self, uid: str) -> None:
        """The pod is gone: its logs and volumes go too."""
        ...
