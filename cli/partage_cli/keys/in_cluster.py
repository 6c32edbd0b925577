"""Arguments and options of ``partage keys ensure``, ``rotate`` and ``retire --in-cluster``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from partage_base.kube import NOT_ENDED, ApiServer, pods_path
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.keys import provision, rotation
from partage_cli.keys.account import keys_account
from partage_cli.keys.objects import KEYS, SIGNING
from partage_cli.keys.store import KeyStore
from partage_cli.keys.trust import SignedPod, Standing, needing, standing
from partage_cli.nodes.command import cluster as nodes_of_cluster
from partage_cli.tables import few
from partage_plugins.api.names import KeyId
from partage_plugins.errors import Refused

_AT_A_TIME: Final = 1000
_ASK_EVERY_S: Final = 5.0
_DEADLINE_S: Final = 30.0


@click.command(
    epilog="""\b
Examples:
  partage keys ensure
  partage keys ensure --extender
"""
)
@click.option("--extender", is_flag=True, help="The certificates of the extender and of its kube-scheduler, too.")
@KUBECONFIG
@NAMESPACE
def ensure(*, extender: bool, kubeconfig: Path | None, namespace: str) -> None:
    """Make in a cluster what is missing of keys and certificates, and renew certificates; print the id that signs.

    What is there stays, and certificates that were not made here are left alone. It may be killed and run again, and
    two may run at once: there is one key.
    """

    async def made(server: ApiServer) -> tuple[KeyId, dict[str, str]]:
        async with keys_account(server, kubeconfig, namespace) as writer:
            store = KeyStore(writer, namespace)
            key = await provision.key_ensured(store)
            return key, await provision.certificates_ensured(store, datetime.now(UTC)) if extender else {}

    key, told = ask_cluster(kubeconfig, made, deadline_s=_DEADLINE_S)
    click.echo(key)
    click.echo(f"signs:        {key}, by Secret {namespace}/{SIGNING}", err=True)
    click.echo(f"nodes get it: ConfigMap {namespace}/{KEYS}", err=True)
    for secret, why in told.items():
        click.echo(f"certificate:  Secret {namespace}/{secret}: {why}", err=True)


@click.command(
    epilog="""\b
Examples:
  partage keys rotate
  partage keys rotate --wait 3600
"""
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 86400),
    default=600,
    show_default=True,
    help="Seconds to wait until every node has the new key.",
)
@KUBECONFIG
@NAMESPACE
def rotate(*, wait_s: float, kubeconfig: Path | None, namespace: str) -> None:
    """Put a new key in the place of the one that signs in a cluster; print its id.

    Nodes get the new public half first. When each that is in force says that it trusts it, it signs. Schedulers read it
    within two minutes, without a restart. Run again after it was stopped, it goes on.
    """

    async def made(server: ApiServer) -> tuple[rotation.Rotated, Standing]:
        async with keys_account(server, kubeconfig, namespace) as writer:
            rotated = await rotation.next_key(KeyStore(writer, namespace))
        cluster = _Cluster(server, namespace)
        known = await rotation.known_everywhere(cluster, rotated.new, wait=_patience(rotated.new, wait_s))
        async with keys_account(server, kubeconfig, namespace) as writer:  # the first token may have expired
            await rotation.switched(KeyStore(writer, namespace), rotated, time.time())
        return rotated, known

    rotated, known = ask_cluster(kubeconfig, made, deadline_s=_DEADLINE_S)
    click.echo(rotated.new)
    click.echo(f"signs now:    {rotated.new}, which {len(known.have)} nodes in force trust", err=True)
    if known.silent:
        click.echo(f"not asked:    nodes that are silent: {few(known.silent)}", err=True)
    click.echo(
        f"verify only:  {rotated.old}; when no pod needs it: partage keys retire --in-cluster {rotated.old}", err=True
    )


def retire(key: KeyId, *, force: bool, kubeconfig: Path | None, namespace: str) -> None:
    """Runs `partage keys retire --in-cluster`."""

    async def done(server: ApiServer) -> KeyId:
        async with keys_account(server, kubeconfig, namespace) as writer:
            cluster = _Cluster(server, namespace)
            return await rotation.retired(KeyStore(writer, namespace), cluster, key, force=force, now_s=time.time())

    signs = ask_cluster(kubeconfig, done, deadline_s=_DEADLINE_S)
    click.echo(f"took {key} out of ConfigMap {namespace}/{KEYS}; nodes forget it when they get that", err=True)
    click.echo(f"signs now:    {signs}", err=True)


class _Cluster:
    """Reads with the caller's identity, since the account that writes keys may read nothing else."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server, self._namespace = server, namespace

    async def standing(self, key: KeyId) -> Standing:
        return standing(await nodes_of_cluster(self._server, namespace=self._namespace, node=None), key)

    async def needing(self, key: KeyId) -> list[str]:
        found = await self._server.list(pods_path(), SignedPod, fields=NOT_ENDED, limit=_AT_A_TIME)
        if found.undecodable:
            unread = few(["/".join(each.key) for each in found.undecodable])
            raise Refused(
                f"{len(found.undecodable)} pods can't be read, so it is not known which key they need: {unread}"
            )
        return needing(found.items, key)


def _patience(key: KeyId, wait_s: float) -> Callable[[Standing], Awaitable[bool]]:
    """Prints the nodes that it waits for whenever they change."""
    told: list[tuple[str, ...]] = []
    ends_s = time.monotonic() + wait_s

    async def wait(found: Standing) -> bool:
        if told[-1:] != [found.lack]:
            told[:] = [found.lack]
            click.echo(f"wait for {len(found.lack)} nodes to trust {key}: {few(found.lack)}", err=True)
        if time.monotonic() + _ASK_EVERY_S > ends_s:
            return False
        await asyncio.sleep(_ASK_EVERY_S)
        return True

    return wait
