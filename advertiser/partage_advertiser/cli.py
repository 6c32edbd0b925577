"""The command of the advertiser: lives as a daemon, or once tells, shows or takes back what it would tell."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import click

from partage_advertiser.inspection import Inspector, api_server, inspecting
from partage_advertiser.inventory import InventoryFile, NoInventory
from partage_advertiser.prune import prune
from partage_advertiser.service import start
from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon import logs
from partage_base.daemon.cli import Instead, daemon_command
from partage_base.daemon.errors import AnotherRuns
from partage_base.daemon.lock import alone
from partage_base.kube import ApiServer, KubeError, Node, node_path
from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from partage_plugins.vocabulary.places import ADVERTISER_LOCK, INVENTORY_FILE

ONCE: Final = "once"
DRY_RUN: Final = "dry-run"
PRUNE: Final = "prune"
_FAILED: Final = 1
_PATIENCE_S: Final = 30.0
_AGAIN_S: Final = 0.5


def _do(settings: AdvertiserSettings, modes: frozenset[str]) -> int:
    logs.configure("advertiser", level="warning", log_format="text")
    if PRUNE in modes:
        return asyncio.run(_prune(settings, dry_run=DRY_RUN in modes))
    return asyncio.run(_tell(settings, dry_run=DRY_RUN in modes))


async def _tell(settings: AdvertiserSettings, *, dry_run: bool) -> int:
    async with AsyncExitStack() as stack:
        if not dry_run:
            await stack.enter_async_context(_alone(settings))
        server = await stack.enter_async_context(await api_server(settings))
        text = await _looked(settings, server)
        return await (_show(settings, server, text) if dry_run else _write(settings, server, text))


async def _looked(settings: AdvertiserSettings, server: ApiServer) -> bytes:
    async with inspecting(settings, server, wake=lambda: None) as inspector:
        return encode_inventory(await _settled(inspector))


async def _settled(inspector: Inspector) -> Inventory:
    """An idle driver takes seconds to find its cards."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE_S
    while True:
        try:
            return await inspector.look(None)
        except NoInventory:
            if loop.time() >= until:
                raise
        await asyncio.sleep(_AGAIN_S)


async def _write(settings: AdvertiserSettings, server: ApiServer, text: bytes) -> int:
    is_new = InventoryFile(settings.root).write(text)
    _say(f"{settings.root / INVENTORY_FILE}: {'written' if is_new else 'says so already'}")
    if await _stands(settings, server) == text.decode():
        _say(f"annotation {ANNOTATION} of node {settings.node_name}: says so already")
        return 0
    body = {"metadata": {"annotations": {ANNOTATION: text.decode()}}}
    await server.patch(node_path(settings.node_name), body, Node)
    _say(f"annotation {ANNOTATION} of node {settings.node_name}: written")
    return 0


async def _show(settings: AdvertiserSettings, server: ApiServer, text: bytes) -> int:
    click.echo(text)
    differs = InventoryFile(settings.root).text() != text
    _say(f"{settings.root / INVENTORY_FILE}: {'would be written' if differs else 'says so already'}")
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
        server = await stack.enter_async_context(await api_server(settings))
        failed = False
        async for pruned in prune(
            server, root=settings.root, namespace=settings.namespace, node=settings.node_name, dry_run=dry_run
        ):
            _say(f"{pruned.what}: {pruned.outcome}")
            failed = failed or pruned.failed
        return _FAILED if failed else 0


def _alone(settings: AdvertiserSettings) -> AbstractAsyncContextManager[None]:
    return alone(settings.root / ADVERTISER_LOCK, "advertiser", within_s=0)


def _say(line: str) -> None:
    click.echo(line, err=True)


main = daemon_command(
    "advertiser",
    AdvertiserSettings,
    start=start,
    about="Tells the cluster which devices this node has and how they are; prune takes back all that it wrote.",
    instead=Instead[AdvertiserSettings](
        flags={
            ONCE: "Look once, write the file and the annotation, and exit: 0 or 1. No Lease, no Events.",
            DRY_RUN: "Look once, print the inventory, say what would be written, and write nothing.",
        },
        words=(PRUNE,),
        do=_do,
    ),
)
