"""Reads and writes the objects that hold keys. No write overwrites what was not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_base.kube import ApiServer, NotFound, config_maps_path, secrets_path
from partage_cli.keys.objects import LABELS, ConfigMap, Secret, folded

TLS: Final = "kubernetes.io/tls"
OPAQUE: Final = "Opaque"


class KeyStore:
    """The objects of one namespace, with the server's identity."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self.namespace = namespace

    async def secret(self, name: str) -> Secret | None:
        try:
            return await self._server.get(f"{secrets_path(self.namespace)}/{name}", Secret)
        except NotFound:
            return None

    async def make_secret(self, name: str, files: Mapping[str, bytes], *, type_: str = OPAQUE) -> Secret:
        """Raises `Conflict` if another run created it meanwhile."""
        body = {"kind": "Secret", "apiVersion": "v1", "type": type_, **_named(name), "data": folded(files)}
        return await self._server.create(secrets_path(self.namespace), body, Secret)

    async def change_secret(
        self, secret: Secret, files: Mapping[str, bytes | None], *, annotations: Mapping[str, str] | None = None
    ) -> Secret:
        """Changes all in one write; a file that is None is removed. Raises `Conflict` if it has changed meanwhile."""
        version: dict[str, object] = {"resourceVersion": secret.metadata.resource_version}
        if annotations:
            version["annotations"] = annotations
        path = f"{secrets_path(self.namespace)}/{secret.metadata.name}"
        return await self._server.patch(path, {"metadata": version, "data": folded(files)}, Secret)

    async def config_map(self, name: str) -> ConfigMap | None:
        try:
            return await self._server.get(f"{config_maps_path(self.namespace)}/{name}", ConfigMap)
        except NotFound:
            return None

    async def put_files(self, name: str, files: Mapping[str, str]) -> None:
        """Puts files into a ConfigMap, besides its others. Raises `Conflict` if another run created it meanwhile."""
        found = await self.config_map(name)
        if found is None:
            body = {"kind": "ConfigMap", "apiVersion": "v1", **_named(name), "data": files}
            await self._server.create(config_maps_path(self.namespace), body, ConfigMap)
        elif not files.items() <= (found.data or {}).items():
            await self._server.patch(f"{config_maps_path(self.namespace)}/{name}", {"data": files}, ConfigMap)

    async def take_file(self, config_map: str, name: str) -> None:
        await self._server.patch(f"{config_maps_path(self.namespace)}/{config_map}", {"data": {name: None}}, ConfigMap)


def _named(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": LABELS}}
