"""The rig's registry: Debian's docker-registry on one address, filled through its HTTP API.

It stands in for all registries: `certs.d/_default` makes containerd query only this one, so the host in an image's name
has no meaning here, and an image that was not pushed is not found instead of downloaded.
"""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rig.errors import ComponentFailed, RigError
from rig.images.image import Blob, Image
from rig.machine.components import Component, Program
from rig.patience import patience_s

PORT: Final = 5000
_OK: Final = 200
_CREATED: Final = 201
_ACCEPTED: Final = 202
_NOT_FOUND: Final = 404


class Registry:
    """The registry at one address, for pushes."""

    def __init__(self, host: str, port: int = PORT) -> None:
        self.host = host
        self.port = port

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def component(self, program: Path, run_folder: Path) -> Component:
        """The registry's process, not started; all its files are below the run folder."""
        folder = run_folder / "registry"
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "config.json"  # it reads YAML, which includes JSON
        settings.write_text(json.dumps(self._settings(folder)))
        argv = (str(program), "serve", str(settings))
        made = Program(name="registry", argv=argv, log=run_folder / "logs/registry.log", run_folder=run_folder)
        return Component(made, self.why_not_ready)

    def why_not_ready(self) -> str | None:
        try:
            with closing(_Session(self)) as session:
                status, _ = session.ask("GET", "/v2/")
        except ComponentFailed as failed:
            return str(failed)
        return None if status == _OK else f"it answered {status}"

    def push(self, image: Image, name: str) -> None:
        """Push an image under this name, without blobs that exist already."""
        repository, tag = place(name)
        with closing(_Session(self)) as session:
            for blob in image.blobs:
                if session.ask("HEAD", f"/v2/{repository}/blobs/{blob.digest}")[0] == _NOT_FOUND:
                    session.upload(repository, blob)
            session.put(f"/v2/{repository}/manifests/{tag}", image.manifest)

    def serve(self, certs: Path) -> None:
        """Make the containerd with this `config_path` pull every name from here, and from nowhere else."""
        hosts = certs / "_default/hosts.toml"
        hosts.parent.mkdir(parents=True, exist_ok=True)
        here = f"http://{self.address}"
        # containerd 1.6 ignores a file without a table of hosts.
        hosts.write_text(f'server = "{here}"\n\n[host."{here}"]\ncapabilities = ["pull", "resolve"]\n')

    def _settings(self, folder: Path) -> dict[str, object]:
        return {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": self.address, "secret": "one registry, nothing to share"},
        }


def place(name: str) -> tuple[str, str]:
    """Repository and tag of an image's name, as containerd requests them."""
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, "latest"
    host, slash, rest = path.partition("/")
    has_host = slash and (host == "localhost" or "." in host or ":" in host)
    repository = rest if has_host else path
    is_official = "/" not in repository and (not has_host or host == "docker.io")
    return (f"library/{repository}" if is_official else repository), tag


class _Session:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._connection = HTTPConnection(registry.host, registry.port, timeout=patience_s())

    def ask(self, method: str, path: str, content: bytes = b"", kind: str = "") -> tuple[int, str]:
        """Status and Location of the answer."""
        try:
            headers = {"Content-Type": kind} if kind else {}
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            self._said = answer.read().decode(errors="replace")
        except (OSError, HTTPException) as error:
            where = self._registry.address
            raise ComponentFailed(f"the registry at {where} did not answer {method} {path}: {error}") from error
        return answer.status, answer.headers.get("Location", "")

    def close(self) -> None:
        self._connection.close()

    def upload(self, repository: str, blob: Blob) -> None:
        path = f"/v2/{repository}/blobs/uploads/"
        status, location = self.ask("POST", path)
        self._want(_ACCEPTED, status, f"POST {path}")
        parts = urlsplit(location)
        query = "&".join(part for part in (parts.query, f"digest={blob.digest}") if part)
        self.put(f"{parts.path}?{query}", Blob("application/octet-stream", blob.content))

    def put(self, path: str, blob: Blob) -> None:
        status, _ = self.ask("PUT", path, blob.content, blob.media_type)
        self._want(_CREATED, status, f"PUT {path}")

    def _want(self, wanted: int, status: int, what: str) -> None:
        if status != wanted:
            raise RigError(f"the registry at {self._registry.address} answered {what} with {status}: {self._said}")
