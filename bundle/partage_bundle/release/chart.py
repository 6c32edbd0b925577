"""The chart for helm: one archive, and the same bytes as an OCI layout. It refers to images by digest."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_bundle import archive, image, interpreter
from partage_bundle.errors import BundleError
from partage_bundle.layer import header

NAME: Final = "partage"
CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_IMAGES: Final = "artifacthub.io/images"
_NO_REGISTRY: Final = b'\n  registry: ""\n'


def write(folder: Path, version: str, layouts: Mapping[str, Path], registry: str) -> Path:
    """Writes `partage-<version of the chart>.tgz` and the layout `partage` beside it; returns the archive's path."""
    folder.mkdir(parents=True)
    files = {name.removeprefix("chart/"): content for name, content in archive.chart(version, layouts)}
    if registry:
        files = _of_registry(files, version, layouts, registry)
    metadata = msgspec.yaml.decode(files["Chart.yaml"])
    packed = folder / f"{NAME}-{metadata['version']}.tgz"
    _pack(packed, files)
    image.write_artifact(folder / NAME, metadata["version"], (CONFIG, metadata), (CONTENT, packed))
    return packed


def _of_registry(
    files: Mapping[str, bytes], version: str, layouts: Mapping[str, Path], registry: str
) -> dict[str, bytes]:
    """Makes that registry the default, and lists its images for Artifact Hub."""
    values = files["values.yaml"]
    if values.count(_NO_REGISTRY) != 1:
        raise BundleError(f"{archive.CHART}/values.yaml must have one line {_NO_REGISTRY.decode().strip()!r}")
    metadata: dict[str, Any] = msgspec.yaml.decode(files["Chart.yaml"])
    images = [
        {"name": name, "image": f"{registry}/{name}:{version}@{image.index_of(layout)['digest']}"}
        for name, layout in sorted(layouts.items())
    ]
    metadata.setdefault("annotations", {})[_IMAGES] = msgspec.yaml.encode(images).decode()
    told = _NO_REGISTRY.replace(b'""', msgspec.json.encode(registry))
    return {**files, "values.yaml": values.replace(_NO_REGISTRY, told), "Chart.yaml": msgspec.yaml.encode(metadata)}


def _pack(target: Path, files: Mapping[str, bytes]) -> None:
    with (
        interpreter.here().packed(target) as pipe,
        tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, content in sorted(files.items()):
            tar.addfile(header(f"{NAME}/{name}", 0o644, size=len(content)), BytesIO(content))
