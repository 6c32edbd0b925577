"""The container runtime, asked to do things: typed, and each call with a deadline.

It is crishim's socket, so that whatever is created is judged as a kubelet's request would be. What makes something is
asked once: whether a create that met a broken connection was done is for its caller to see in the lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_base.cri import UnaryClient
from partage_base.cri.errors import PeerRefused
from partage_cli.machine.runtime import messages, requests
from partage_cli.machine.runtime.messages import ContainerState, ListedContainer, Sandbox, StoredImage
from partage_cli.machine.runtime.names import whole_name
from partage_cli.machine.runtime.plans import ContainerPlan, SandboxPlan

_RUNTIME: Final = "/runtime.v1.RuntimeService/"
_IMAGES: Final = "/runtime.v1.ImageService/"
_ASKED_S: Final = 10.0
"""For questions, which the runtime answers from memory."""
_MADE_S: Final = 120.0
"""As long as kubelet waits for a sandbox or a container: plugins make networks and snapshots of large images."""
_PULLED_S: Final = 3600.0
_NOT_FOUND: Final = 5


class MachineRuntime:
    def __init__(self, client: UnaryClient) -> None:
        self._client = client

    async def version(self) -> str:
        """The runtime's name and its version."""
        answer = messages.read("VersionResponse", await self._ask("Version", requests.message("VersionRequest")))
        return f"{answer.runtime_name.decode(errors='replace')} {answer.runtime_version.decode(errors='replace')}"

    async def status(self) -> str:
        """Empty, or why it is not ready."""
        return messages.why_not_ready(await self._ask("Status", b""))

    async def run_sandbox(self, plan: SandboxPlan) -> str:
        """Returns the id of the sandbox."""
        raw = await self._make("RunPodSandbox", requests.run_sandbox(plan))
        return _text(messages.read("RunPodSandboxResponse", raw).pod_sandbox_id)

    async def create(self, sandbox_id: str, plan: ContainerPlan, sandbox: SandboxPlan) -> str:
        """The container's id; `PeerRefused` has crishim's sentence where it says no."""
        raw = await self._make("CreateContainer", requests.create_container(sandbox_id, plan, sandbox))
        return _text(messages.read("CreateContainerResponse", raw).container_id)

    async def start(self, container_id: str) -> None:
        await self._make("StartContainer", requests.message("ContainerReference", container_id=container_id))

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Asks it to end and kills it after the grace; done too where it is not there or has ended."""
        request = requests.message("StopContainerRequest", container_id=container_id, timeout=grace_s)
        await self._end("StopContainer", request, deadline_s=grace_s + _MADE_S)

    async def remove(self, container_id: str) -> None:
        """Kills it where it runs; done too where it is not there."""
        await self._end("RemoveContainer", requests.message("ContainerReference", container_id=container_id))

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Kills what runs in it and takes its network; done too where it is not there."""
        await self._end("StopPodSandbox", requests.message("PodSandboxReference", pod_sandbox_id=sandbox_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """With all that is in it; done too where it is not there."""
        await self._end("RemovePodSandbox", requests.message("PodSandboxReference", pod_sandbox_id=sandbox_id))

    async def sandboxes(self) -> tuple[Sandbox, ...]:
        return messages.sandboxes(await self._ask("ListPodSandbox", b""))

    async def containers(self) -> tuple[ListedContainer, ...]:
        return messages.containers(await self._ask("ListContainers", b""))

    async def container(self, container_id: str) -> ContainerState:
        """Raises `PeerRefused` where there is no such container."""
        request = requests.message("ContainerStatusRequest", container_id=container_id, verbose=True)
        return messages.container_state(await self._ask("ContainerStatus", request))

    async def address(self, sandbox_id: str) -> str:
        """In the bridge's network; empty in the machine's own."""
        request = requests.message("PodSandboxReference", pod_sandbox_id=sandbox_id)
        answer = messages.read("PodSandboxStatusResponse", await self._ask("PodSandboxStatus", request))
        return _text(answer.status.network.ip)

    async def exec_url(self, container_id: str, argv: Sequence[str], *, tty: bool, stdin: bool) -> str:
        """Where the command begins once it is connected to, which must be soon; with a terminal there is no stderr."""
        request = requests.message(
            "ExecRequest", container_id=container_id, cmd=tuple(argv), tty=tty, stdin=stdin, stdout=True, stderr=not tty
        )
        raw = await self._ask("Exec", request)
        return _text(messages.read("StreamResponse", raw).url)

    async def attach_url(self, container_id: str, *, tty: bool, stdin: bool, output: bool = True) -> str:
        """As for `exec_url`; `tty` must be as the container was made."""
        request = requests.message(
            "AttachRequest",
            container_id=container_id,
            tty=tty,
            stdin=stdin,
            stdout=output,
            stderr=output and not tty,
        )
        raw = await self._ask("Attach", request)
        return _text(messages.read("StreamResponse", raw).url)

    async def reopen_log(self, container_id: str) -> None:
        """Has it write to a new file, after the old one was renamed."""
        await self._ask("ReopenContainerLog", requests.message("ContainerReference", container_id=container_id))

    async def pull(self, image: str) -> str:
        """The image's id; `PeerRefused` has the words of the runtime and the registry."""
        request = requests.message("ImageRequest", image={"image": whole_name(image)})
        raw = await self._client.call(f"{_IMAGES}PullImage", request, deadline_s=_PULLED_S)
        return _text(messages.read("PullImageResponse", raw).image_ref)

    async def image(self, name: str) -> str | None:
        """Its id, or None where it is not in the store."""
        request = requests.message("ImageRequest", image={"image": whole_name(name)})
        raw = await self._client.call(f"{_IMAGES}ImageStatus", request, deadline_s=_ASKED_S)
        return messages.image_id(raw)

    async def images(self) -> tuple[StoredImage, ...]:
        return messages.images(await self._client.call(f"{_IMAGES}ListImages", b"", deadline_s=_ASKED_S))

    def close(self) -> None:
        self._client.close()

    async def _ask(self, method: str, request: bytes) -> bytes:
        return await self._client.call(_RUNTIME + method, request, deadline_s=_ASKED_S)

    async def _make(self, method: str, request: bytes) -> bytes:
        return await self._client.call(_RUNTIME + method, request, deadline_s=_MADE_S, repeatable=False)

    async def _end(self, method: str, request: bytes, *, deadline_s: float = _MADE_S) -> None:
        try:
            await self._client.call(_RUNTIME + method, request, deadline_s=deadline_s)
        except PeerRefused as refused:
            if refused.status != _NOT_FOUND:
                raise


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
