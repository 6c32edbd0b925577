"""Images of trees, as an OCI layout: one index for all machines, with the version as its tag.

They contain no time, so equal trees have equal digests. Whoever starts a container sets its command.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

from partage_bundle import layer
from partage_bundle.layer import Layer
from partage_bundle.recipe import PREFIX, Machine, Tree

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
TAG: Final = "org.opencontainers.image.ref.name"


@dataclass(frozen=True)
class Blob:
    """A blob of a layout, where its file is named by its digest."""

    kind: str
    digest: str
    size: int

    def described(self, **more: object) -> dict[str, Any]:
        return {"mediaType": self.kind, "digest": self.digest, "size": self.size, **more}


def name(tree: Tree) -> str:
    return f"partage-{tree.name}"


def write(layout: Path, tree: Tree, version: str, built: Iterable[tuple[Machine, Path]]) -> Blob:
    """Rewrites the layout with one image for each machine; returns the index, which the tag refers to."""
    _begin(layout)
    manifests = [
        _image(layout, tree, machine, version, (layer.of_tree(path, version), layer.of_surroundings(version)))
        for machine, path in built
    ]
    index = _document(layout, INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})
    _end(layout, index, version)
    return index


def write_artifact(layout: Path, tag: str, config: tuple[str, dict[str, Any]], file: tuple[str, Path]) -> None:
    """Writes an artifact that is no image, such as a chart: a configuration and one file, each with its media type."""
    _begin(layout)
    described = {"config": _document(layout, *config).described(), "layers": [_file(layout, *file).described()]}
    _end(layout, _document(layout, MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, **described}), tag)


def index_of(layout: Path) -> dict[str, Any]:
    """Media type, digest and size of what the tag refers to, as the layout has them."""
    (index,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    return dict(index)


def path_of(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _begin(layout: Path) -> None:
    shutil.rmtree(layout, ignore_errors=True)
    (layout / "blobs/sha256").mkdir(parents=True)


def _end(layout: Path, described: Blob, tag: str) -> None:
    top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [described.described(annotations={TAG: tag})]}
    (layout / "index.json").write_bytes(_json(top))
    (layout / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))


def _image(layout: Path, tree: Tree, machine: Machine, version: str, layers: tuple[Layer, ...]) -> dict[str, Any]:
    blobs = [_file(layout, LAYER, each.file) for each in layers]
    settings: dict[str, Any] = {
        "User": str(tree.user),
        "WorkingDir": "/",
        "Env": [f"PATH={PREFIX}/current/bin"],
        "Labels": {"org.opencontainers.image.title": name(tree), "org.opencontainers.image.version": version},
    }
    root = {"type": "layers", "diff_ids": [each.digest for each in layers]}
    said = {"architecture": machine.debian, "os": "linux", "config": settings, "rootfs": root}
    config = _document(layout, CONFIG, said)
    described = {"config": config.described(), "layers": [blob.described() for blob in blobs]}
    manifest = _document(layout, MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, **described})
    return manifest.described(platform={"architecture": machine.debian, "os": "linux"})


def _document(layout: Path, kind: str, content: dict[str, Any]) -> Blob:
    whole = _json(content)
    blob = Blob(kind, "sha256:" + sha256(whole).hexdigest(), len(whole))
    path_of(layout, blob.digest).write_bytes(whole)
    return blob


def _file(layout: Path, kind: str, source: Path) -> Blob:
    with source.open("rb") as file:
        digest = "sha256:" + file_digest(file, "sha256").hexdigest()
    target = path_of(layout, digest)
    if not target.exists():
        put(source, target)
    return Blob(kind, digest, source.stat().st_size)


def put(source: Path, target: Path) -> None:
    """Hard-links if possible: a file on the cache's own disk needs no copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
