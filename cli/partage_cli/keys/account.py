"""The only account that may write keys into a cluster: this process's own, or one for which it requests a token.

An administrator who rotates keys reads with their own identity, and writes as this account, with a short-lived token.
So a stolen right to write ConfigMaps is not enough to make nodes trust a key, and the audit log has both names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from partage_base.kube import Access, ApiServer, NotFound, token_path
from partage_base.version import VERSION
from partage_cli.clusters import identity
from partage_cli.keys.objects import ACCOUNT
from partage_plugins.errors import Refused

_LASTS_S: Final = 3600


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str


class _Token(msgspec.Struct, frozen=True):
    status: _TokenStatus


@asynccontextmanager
async def keys_account(server: ApiServer, kubeconfig: Path | None, namespace: str) -> AsyncGenerator[ApiServer]:
    """The API server, called with that account; raises `KubeError`."""
    if (await identity(server)).user == f"system:serviceaccount:{namespace}:{ACCOUNT}":
        yield server
        return
    token = await _token(server, namespace)
    access = await asyncio.to_thread(Access.find, kubeconfig, token=token)
    async with ApiServer(access, user_agent=f"partage/{VERSION}") as writer:
        yield writer


async def _token(server: ApiServer, namespace: str) -> str:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _LASTS_S},
    }
    try:
        return (await server.create(token_path(namespace, ACCOUNT), body, _Token)).status.token
    except NotFound:
        raise Refused(
            f"there is no account {namespace}/{ACCOUNT}; `kubectl apply -k manifests/keys` makes it"
        ) from None
