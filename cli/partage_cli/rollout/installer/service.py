"""The installer as a daemon: one per host, with a fixed node name and tree version.

A stop undoes nothing. A running command may finish while there is time; nothing new is started.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.api_server import server_for
from partage_base.daemon.errors import AnotherRuns, BadConfiguration
from partage_base.daemon.life import Daemon
from partage_base.event_wait import set_within
from partage_base.kube import ApiServer
from partage_cli.installation.errors import BadTree
from partage_cli.installation.tree import own_tree, version_of
from partage_cli.rollout.fleet import Fleet
from partage_cli.rollout.installer.host import HostProgram, inside
from partage_cli.rollout.installer.installer import Installer
from partage_cli.rollout.installer.reported_node import ReportedNode
from partage_cli.rollout.installer.settings import InstallerSettings
from partage_cli.rollout.lease import RolloutLease

_KEPT_FOR_THE_END_S: Final = 3.0
_log = structlog.get_logger()


async def start(settings: InstallerSettings, daemon: Daemon) -> InstallerLife:
    tree = settings.tree or own_tree()
    if tree is None:
        raise BadConfiguration("this program is in no tree of a version: name one by the setting tree")
    try:
        version = version_of(tree)
    except BadTree as error:
        raise BadConfiguration(str(error)) from None
    daemon.stack.enter_context(_alone(settings.host))
    server = await daemon.stack.enter_async_context(await server_for("installer", settings.kubeconfig))
    if settings.percent is not None:
        _log.warning("the setting percent is not used any more: nodes are worked on one at a time")
    _log.info("installing on this node when its turn comes", version=version)
    return InstallerLife(settings, daemon, server, tree=tree, version=version)


class InstallerLife:
    """Implements `partage_base.daemon.life.Running` for the installer."""

    def __init__(
        self, settings: InstallerSettings, daemon: Daemon, server: ApiServer, *, tree: Path, version: str
    ) -> None:
        self._settings, self._daemon = settings, daemon
        self._is_stopping = False
        woken = asyncio.Event()
        self._node = ReportedNode(server, settings.node_name, changed=woken.set)
        lease = RolloutLease(server, namespace=settings.namespace, lease_s=settings.lease_s)
        host = HostProgram(
            settings.host, version, within_s=settings.work_within_s, run=inside(settings.host, settings.node_name)
        )
        self._installer = Installer(
            settings,
            version=version,
            tree=tree,
            node=self._node,
            fleet=Fleet(server, lease),
            host=host,
            woken=woken,
            may_begin=lambda: not self._is_stopping,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        self._daemon.tasks.start(self._node.run(), name="own node")
        self._daemon.tasks.start(self._installer.run(), name="installer")
        await stopping.wait()
        self._is_stopping = True
        await set_within(self._installer.at_rest, max(0.0, self._settings.stop_deadline_s - _KEPT_FOR_THE_END_S))


@contextmanager
def _alone(host: Path) -> Generator[None]:
    """Excludes a second installer by a lock on a folder of the host, so that no lock file is left."""
    try:
        descriptor = os.open(host / "etc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadConfiguration(
            f"{host / 'etc'} is no folder: {error.strerror}; mount the host's root at host"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherRuns(f"another installer works on the host at {host}; stop that one, or this one") from None
        yield
    finally:
        os.close(descriptor)
