"""The command of the advertiser: runs the daemon, or once writes, prints or removes what the daemon would publish."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

import click
import msgspec

from partage_advertiser.inspection import Inspector, api_server, inspecting
from partage_advertiser.inventory import InventoryFile, NoInventory
from partage_advertiser.liveness_files import PauseFile
from partage_advertiser.service import start
from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon import logs
from partage_base.daemon.cli import Instead, daemon_command
from partage_base.daemon.errors import AnotherRuns, BadConfiguration
from partage_base.daemon.lock import alone
from partage_base.kube import ApiServer, KubeError, Lease, Node, NotFound, lease_path, node_path
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.places import ADVERTISER_LOCK, INVENTORY_FILE, PAUSE_FOLDER
from partage_plugins.codecs import encode_inventory
from partage_plugins.errors import PartageError

ONCE: Final = "once"
DRY_RUN: Final = "dry-run"
PRUNE: Final = "prune"
_FAILED: Final = 1
_PATIENCE_S: Final = 30.0
_AGAIN_S: Final = 0.5


def mistakes(settings: AdvertiserSettings) -> list[str]:
    """Configuration mistakes, one line each.

    An absent driver or API server is not a mistake, since either may start later.
    """
    logs.configure("advertiser", level="warning", log_format="text")
    try:
        asyncio.run(_begun(settings))
    except BadConfiguration as error:
        return list(error.mistakes)
    except PartageError as error:
        return [str(error)]
    return []


async def _begun(settings: AdvertiserSettings) -> None:
    """Set up everything that an inspection needs, without one; works beside a running advertiser."""
    async with api_server(settings) as server, inspecting(settings, server, wake=lambda: None):
        pass


def _do(settings: AdvertiserSettings, modes: frozenset[str]) -> int:
    logs.configure("advertiser", level="warning", log_format="text")
    if PRUNE in modes:
        return asyncio.run(_prune(settings, dry_run=DRY_RUN in modes))
    return asyncio.run(_tell(settings, dry_run=DRY_RUN in modes))


async def _tell(settings: AdvertiserSettings, *, dry_run: bool) -> int:
    async with AsyncExitStack() as stack:
        if not dry_run:
            await stack.enter_async_context(_alone(settings))
        server = await stack.enter_async_context(api_server(settings))
        async with inspecting(settings, server, wake=lambda: None) as inspector:
            text = encode_inventory(await _settled(inspector))
        return await (_show(settings, server, text) if dry_run else _write(settings, server, text))


async def _settled(inspector: Inspector) -> Inventory:
    """The first inventory; retried, since an idle driver takes seconds to find its cards."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE_S
    while True:
        try:
            return await inspector.look(None)
        except NoInventory:
            if loop.time() >= until:
                raise
        await asyncio.sleep(_AGAIN_S)


async def _write(settings: AdvertiserSettings, server: ApiServer | None, text: bytes) -> int:
    is_new = InventoryFile(settings.root).write(text)
    _say(f"{settings.root / INVENTORY_FILE}: {'written' if is_new else 'says so already'}")
    if server is None:
        return 0
    if await _stands(settings, server) == text.decode():
        _say(f"annotation {ANNOTATION} of node {settings.node_name}: says so already")
        return 0
    body = {"metadata": {"annotations": {ANNOTATION: text.decode()}}}
    await server.patch(node_path(settings.node_name), body, Node)
    _say(f"annotation {ANNOTATION} of node {settings.node_name}: written")
    return 0


async def _show(settings: AdvertiserSettings, server: ApiServer | None, text: bytes) -> int:
    click.echo(text)
    differs = InventoryFile(settings.root).text() != text
    _say(f"{settings.root / INVENTORY_FILE}: {'would be written' if differs else 'says so already'}")
    if server is None:
        return 0
    try:
        stands = await _stands(settings, server)
    except KubeError as error:
        _say(f"annotation {ANNOTATION}: can't be compared: {error}")
        return _FAILED
    what = "says so already" if stands == text.decode() else "would be written"
    _say(f"annotation {ANNOTATION} of node {settings.node_name}: {what}")
    return 0


async def _stands(settings: AdvertiserSettings, server: ApiServer) -> str | None:
    return (await server.get(node_path(settings.node_name), Node)).metadata.annotations.get(ANNOTATION)


async def _prune(settings: AdvertiserSettings, *, dry_run: bool) -> int:
    async with AsyncExitStack() as stack:
        if not dry_run:
            try:
                await stack.enter_async_context(_alone(settings))
            except AnotherRuns as error:
                raise AnotherRuns(f"{error}: it would write everything again") from None
        server = await stack.enter_async_context(api_server(settings))
        failed = False
        told = [] if server is None else [partial(prune, settings, server) for prune in (_annotation, _lease)]
        for prune in (*told, partial(_files, settings)):  # a failure does not stop the others
            pruned = await prune(dry_run=dry_run)
            _say(f"{pruned.what}: {pruned.outcome}")
            failed = failed or pruned.failed
        return _FAILED if failed else 0


def _alone(settings: AdvertiserSettings) -> AbstractAsyncContextManager[None]:
    return alone(settings.root / ADVERTISER_LOCK, "advertiser", within_s=0)


def _say(line: str) -> None:
    click.echo(line, err=True)


class Pruned(NamedTuple):
    """The outcome for one object."""

    what: str
    outcome: str
    """removed, would be removed, was not there, or not removed: why."""
    failed: bool = False


async def _annotation(settings: AdvertiserSettings, server: ApiServer, *, dry_run: bool) -> Pruned:
    what = f"annotation {ANNOTATION} of node {settings.node_name}"
    try:
        if await _stands(settings, server) is None:
            return Pruned(what, "was not there")
        if not dry_run:
            await server.patch(
                node_path(settings.node_name), {"metadata": {"annotations": {ANNOTATION: None}}}, msgspec.Raw
            )
    except NotFound:
        return Pruned(what, "was not there")
    except KubeError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "would be removed" if dry_run else "removed")


async def _lease(settings: AdvertiserSettings, server: ApiServer, *, dry_run: bool) -> Pruned:
    what = f"Lease {settings.namespace}/{settings.node_name}"
    path = lease_path(settings.namespace, settings.node_name)
    try:
        await server.get(path, Lease)
        if not dry_run:
            await server.delete(path)
    except NotFound:
        return Pruned(what, "was not there")
    except KubeError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "would be removed" if dry_run else "removed")


async def _files(settings: AdvertiserSettings, *, dry_run: bool) -> Pruned:
    root = settings.root
    what = f"{root / INVENTORY_FILE} and our file in {root / PAUSE_FOLDER}"
    try:
        if dry_run:
            return Pruned(what, "would be removed")
        gone = [InventoryFile(root).remove(), PauseFile(root).say(None)]
    except OSError as error:
        return Pruned(what, f"not removed: {error}", failed=True)
    return Pruned(what, "removed" if any(gone) else "were not there")


main = daemon_command(
    "advertiser",
    AdvertiserSettings,
    start=start,
    about="Tells the cluster which devices this node has and how they are; prune takes back all that it wrote.",
    check=mistakes,
    instead=Instead[AdvertiserSettings](
        flags={
            ONCE: "Look once, write the file and the annotation, and exit: 0 or 1. No Lease, no Events.",
            DRY_RUN: "Look once, print the inventory, say what would be written, and write nothing.",
        },
        words=(PRUNE,),
        do=_do,
    ),
)
