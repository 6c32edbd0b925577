"""An image as a value: its layers and the defaults of its containers. Pure.

It is an OCI image. The configuration contains no time, so equal files and settings give an equal digest, and two images
that differ only by a label have different digests.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rig.images.layers import Entry, File, Folder, archive

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
_NAME: Final = "io.containerd.image.name"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHITECTURE: Final = _ARCHITECTURES.get(platform.machine(), platform.machine())

_SEARCHED: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Blob:
    media_type: str
    content: bytes

    @cached_property
    def digest(self) -> str:
        return "sha256:" + hashlib.sha256(self.content).hexdigest()

    def described(self, **more: object) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content), **more}


@dataclass(frozen=True)
class Settings:
    """Defaults of a container, which its pod may override."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ("sh",)
    user: str = ""
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": _SEARCHED})
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def document(self) -> dict[str, Any]:
        return {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "User": self.user,
            "Env": [f"{name}={value}" for name, value in sorted(self.env.items())],
            "Labels": dict(sorted(self.labels.items())),
            "WorkingDir": "/",
        }


@dataclass(frozen=True)
class Image:
    layers: tuple[Blob, ...]
    settings: Settings = Settings()

    @classmethod
    def of(cls, entries: Iterable[Entry], settings: Settings | None = None) -> Image:
        return cls(layers=(Blob(LAYER, archive(entries)),), settings=settings or Settings())

    def with_entries(self, *entries: Entry) -> Image:
        return replace(self, layers=(*self.layers, Blob(LAYER, archive(entries))))

    def with_files(self, files: Mapping[str, bytes | Path], *, mode: int = 0o755) -> Image:
        """Add files by path in the image, from their content or from a file of this machine."""
        contents = {path: each.read_bytes() if isinstance(each, Path) else each for path, each in files.items()}
        return self.with_entries(*(File(path, contents[path], mode) for path in sorted(contents)))

    def starting(self, *entrypoint: str) -> Image:
        """Set the program to start, without arguments."""
        return replace(self, settings=replace(self.settings, entrypoint=entrypoint, command=()))

    def as_user(self, user: str) -> Image:
        """Set the user: a name or a number, optionally with a group after a colon."""
        return replace(self, settings=replace(self.settings, user=user))

    def with_env(self, **env: str) -> Image:
        """Add environment variables."""
        return replace(self, settings=replace(self.settings, env={**self.settings.env, **env}))

    def labelled(self, **labels: str) -> Image:
        """Add labels, which also change the digest."""
        return replace(self, settings=replace(self.settings, labels={**self.settings.labels, **labels}))

    @cached_property
    def config(self) -> Blob:
        """The image configuration that runtimes read; its digest is the image's id."""
        layers = {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]}
        document = {"architecture": ARCHITECTURE, "os": "linux", "config": self.settings.document(), "rootfs": layers}
        return Blob(CONFIG, _json(document))

    @cached_property
    def manifest(self) -> Blob:
        parts = {"config": self.config.described(), "layers": [layer.described() for layer in self.layers]}
        return Blob(MANIFEST, _json({"schemaVersion": 2, "mediaType": MANIFEST, **parts}))

    @property
    def blobs(self) -> tuple[Blob, ...]:
        return (*self.layers, self.config)


def layout(images: Mapping[str, Image]) -> bytes:
    """These images by name in a tar archive: an OCI layout, with the manifest.json that `docker load` reads."""
    index = [image.manifest.described(annotations={_NAME: name}) for name, image in sorted(images.items())]
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": index}
    saved = [
        {"Config": _path(image.config), "RepoTags": [name], "Layers": [_path(layer) for layer in image.layers]}
        for name, image in sorted(images.items())
    ]
    blobs = {blob.digest: blob for image in images.values() for blob in (*image.blobs, image.manifest)}
    entries: list[Entry] = [
        File("/oci-layout", _json({"imageLayoutVersion": "1.0.0"}), 0o644),
        File("/index.json", _json(document), 0o644),
        File("/manifest.json", _json(saved), 0o644),
        Folder("/blobs"),
        Folder("/blobs/sha256"),
    ]
    entries += [File("/" + _path(blobs[digest]), blobs[digest].content, 0o644) for digest in sorted(blobs)]
    return archive(entries)


def _path(blob: Blob) -> str:
    return "blobs/" + blob.digest.replace(":", "/")


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
