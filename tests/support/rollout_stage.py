"""Installers of many made-up nodes in one process: the real code on real folders, with any API server.

Only the outermost part is fake: the host's ``partage node``, which records its commands and fails on request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.keyring import encode_public
from partage_base.kube import Access, ApiServer, Listing, PatchKind
from partage_cli.installation.places import JOURNAL
from partage_cli.rollout.fleet import Fleet
from partage_cli.rollout.installer.host import HostProgram, Ran
from partage_cli.rollout.installer.installer import Installer
from partage_cli.rollout.installer.reported_node import ReportedNode
from partage_cli.rollout.installer.settings import InstallerSettings
from partage_cli.rollout.lease import RolloutLease
from partage_plugins.codecs.signature import key_id
from support.trees import a_tree

T = TypeVar("T")
QUICK: Final = InstallerSettings(ask_every_s=0.02, look_every_s=5.0, lease_s=2.0, lapse_s=0.0)
V1: Final = "0.1.0-g000000000001"
V2: Final = "0.1.0-g000000000002"


def name_of(number: int) -> str:
    return f"n{number:02}"


@dataclass
class MadeUpHost:
    """A folder with a fake `partage node`."""

    root: Path
    trouble: str = ""
    """Error of switching on, upgrading and uninstalling, if any."""
    version: str = ""
    in_force: bool = False
    late_looks: int = 0
    """Number of status calls after coming into force that still report it as not in force."""
    touched: list[str] = field(default_factory=list[str])
    """Commands that changed something, or tried to."""
    altered: tuple[str, ...] = ()
    """Files of the installation that were altered."""
    stays_altered: bool = False
    """Whether reinstalling leaves them altered."""
    looks: int = 0
    """Number of status calls."""
    at_work: Callable[[], Awaitable[object]] | None = None
    """Called within each command that changes something."""

    async def __call__(self, argv: Sequence[str], within_s: float) -> Ran:
        command, version = argv[2], Path(argv[0]).parts[3]
        if command == "status":
            self.looks += 1
            is_late, self.late_looks = self.in_force and self.late_looks > 0, self.late_looks - self.in_force
            in_force = self.in_force and not is_late
            why = "" if in_force else "kubelet speaks to containerd"
            said = {"version": self.version or None, "in_force": in_force, "why": why, "endpoint": "crishim"}
            return Ran(0, json.dumps({**said, "altered": self.altered}).encode())
        self.touched.append(command)
        if self.at_work is not None:
            await self.at_work()
        if self.trouble and command in ("switch-on", "upgrade", "uninstall"):
            return Ran(1, b"", f"partage: {self.trouble}\n".encode())
        self._do(command, version)
        return Ran(0)

    def _do(self, command: str, version: str) -> None:
        journal = self.root / JOURNAL
        if command == "uninstall":
            self.version, self.in_force = "", False
            journal.unlink()
            return
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.write_text("{}")
        self.version = version
        self.in_force = self.in_force or command == "switch-on"
        self.altered = self.altered if self.stays_altered else ()


class Mortal(ApiServer):
    """A client whose process may die: from then on none of its calls returns.

    A task that is cancelled while it connects can leave its socket with the loop, unlike a killed process. So a dead
    client hangs, and is cancelled at the end of the test.
    """

    def __init__(self, access: Access, *, dies: Callable[[], bool] = lambda: False) -> None:
        super().__init__(access, user_agent="partage-installer", connections=1)
        self._dies = dies
        self.is_dead = False

    async def create(self, path: str, body: object, type_: type[T], *, within_s: float = 0) -> T:
        return await self._written(super().create(path, body, type_, within_s=within_s))

    async def replace(self, path: str, body: object, type_: type[T]) -> T:
        return await self._written(super().replace(path, body, type_))

    async def patch(
        self, path: str, body: object, type_: type[T], *, how: PatchKind = "merge", within_s: float = 0
    ) -> T:
        return await self._written(super().patch(path, body, type_, how=how, within_s=within_s))

    async def get(self, path: str, type_: type[T]) -> T:
        return await self._outlived(super().get(path, type_))

    async def list(
        self, path: str, item_type: type[T], *, labels: str = "", fields: str = "", limit: int = 0
    ) -> Listing[T]:
        return await self._outlived(super().list(path, item_type, labels=labels, fields=fields, limit=limit))

    async def _written(self, call: Coroutine[Any, Any, T]) -> T:
        """A writing call; the process may die before and after it."""
        with contextlib.closing(call):
            self.is_dead = self.is_dead or self._dies()
            done = await self._outlived(call)
            self.is_dead = self.is_dead or self._dies()
            await self.live()
            return done

    async def _outlived(self, call: Coroutine[Any, Any, T]) -> T:
        with contextlib.closing(call):
            await self.live()
            done = await call
            await self.live()
            return done

    async def live(self) -> None:
        """Return if alive, otherwise hang."""
        if self.is_dead:
            await asyncio.Event().wait()


class RolloutStage:
    """A test's fleet. The test creates and labels the Nodes."""

    def __init__(self, folder: Path, server_of: Callable[[str], Mortal], settings: InstallerSettings = QUICK) -> None:
        self._folder, self.server_of = folder, server_of
        self.settings = replace(settings, keys=folder / "keys", node_settings=folder / "node-settings")
        self.hosts: dict[str, MadeUpHost] = {}
        self._running: dict[str, Mortal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.settings.keys.mkdir(mode=0o755)
        public = Ed25519PrivateKey.generate().public_key()
        key = self.settings.keys / f"{key_id(public)}.pub"
        key.write_bytes(encode_public(public))
        key.chmod(0o644)
        self.trees = {version: a_tree(folder / version, version) for version in (V1, V2)}

    def set(self, **settings: float) -> None:
        """Change settings of installers that are started later."""
        self.settings = replace(self.settings, **settings)

    def host(self, name: str) -> MadeUpHost:
        if name not in self.hosts:
            root = self._folder / "hosts" / name
            root.mkdir(parents=True)
            self.hosts[name] = MadeUpHost(root)
        return self.hosts[name]

    def start(self, *names: str, version: str = V1) -> None:
        """Start an installer on each node, as a pod of the DaemonSet would."""
        for name in names:
            server = self._running[name] = self.server_of(name)
            self._tasks.add(asyncio.create_task(self._live(name, version, server), name=f"installer of {name}"))

    def kill(self, *names: str) -> None:
        """From now on no call of theirs reaches the API server or the host."""
        for name in names:
            self._running.pop(name).is_dead = True

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def touched(self) -> list[str]:
        """Nodes on which a command that changes something was run."""
        return sorted(name for name, host in self.hosts.items() if host.touched)

    async def _live(self, name: str, version: str, server: Mortal) -> None:
        woken = asyncio.Event()

        async def run(argv: Sequence[str], within_s: float) -> Ran:
            await server.live()
            return await self.host(name)(argv, within_s)

        async with server:
            node = ReportedNode(server, name, changed=woken.set)
            host = self.host(name)
            lease = RolloutLease(server, namespace=self.settings.namespace, lease_s=self.settings.lease_s)
            installer = Installer(
                self.settings,
                version=version,
                tree=self.trees[version],
                node=node,
                fleet=Fleet(server, lease),
                host=HostProgram(host.root, version, within_s=60, run=run),
                woken=woken,
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(node.run())
                group.create_task(installer.run())


def a_made_up_node(name: str, *, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    labelled = {"kubernetes.io/hostname": name, "partage.dev/install": "yes", **(labels or {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labelled}}
