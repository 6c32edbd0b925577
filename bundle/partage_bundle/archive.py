"""One archive for a cluster without a network: images, trees and chart, with their checksums.

It is not compressed as a whole, since its parts are. A tree's archive is a layer of its image, so it is stored once
under two names. The chart refers to the images beside it by their digests.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import Final

from partage_bundle import image
from partage_bundle.errors import BundleError
from partage_bundle.layer import Layer, header
from partage_bundle.process import ROOT

CHART: Final = ROOT / "manifests/chart"
SUMS: Final = "SHA256SUMS"
_SAYS_VERSION: Final = re.compile(rb"^appVersion:.*$", re.MULTILINE)


def write(target: Path, version: str, layouts: Mapping[str, Path], trees: Mapping[str, Layer]) -> None:
    """`layouts` are by the image's name, `trees` by the name of their archive. The file appears atomically."""
    part = target.with_suffix(".part")
    with part.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        digests = _Writer(tar, f"partage-{version}").write(layouts, trees, dict(chart(version, layouts)))
        _add(tar, f"partage-{version}/{SUMS}", sums(digests))
    part.rename(target)


def sums(digests: Mapping[str, str]) -> bytes:
    """In the format of `sha256sum -c`."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


class _Writer:
    def __init__(self, tar: tarfile.TarFile, top: str) -> None:
        self._tar = tar
        self._top = top
        self._digests: dict[str, str] = {}

    def write(
        self, layouts: Mapping[str, Path], trees: Mapping[str, Layer], of_chart: Mapping[str, bytes]
    ) -> dict[str, str]:
        """Returns the digest of each file."""
        for name, layout in sorted(layouts.items()):
            for path in sorted(each for each in layout.rglob("*") if each.is_file()):
                self._file(f"images/{name}/{path.relative_to(layout)}", path)
        blobs = {digest: name for name, digest in self._digests.items()}
        for name, layer in sorted(trees.items()):
            digest = self._digests[f"trees/{name}"] = _digest(layer.file)
            link = header(f"{self._top}/trees/{name}", 0o644, tarfile.LNKTYPE)
            link.linkname = f"{self._top}/{blobs[digest]}"
            self._tar.addfile(link)
        for name, content in sorted(of_chart.items()):
            _add(self._tar, f"{self._top}/{name}", content)
            self._digests[name] = sha256(content).hexdigest()
        return self._digests

    def _file(self, name: str, path: Path) -> None:
        with path.open("rb") as content:
            self._tar.addfile(header(f"{self._top}/{name}", 0o644, size=path.stat().st_size), content)
        self._digests[name] = _digest(path)


def chart(version: str, layouts: Mapping[str, Path]) -> Iterator[tuple[str, bytes]]:
    """The chart's files below `chart/`, which refer to these images by digest."""
    for path in sorted(each for each in CHART.rglob("*") if each.is_file()):
        content = path.read_bytes()
        if path == CHART / "Chart.yaml":
            content = _SAYS_VERSION.sub(f"appVersion: {version}".encode(), content)
        elif path == CHART / "values.yaml":
            content = _pinned(content, version, layouts)
        yield f"chart/{path.relative_to(CHART)}", content


def _pinned(values: bytes, version: str, layouts: Mapping[str, Path]) -> bytes:
    """A digest fixes the content, wherever a registry's tag points. The tag beside it shows people the version."""
    for name, layout in layouts.items():
        value = f"\n  {name.removeprefix('partage-')}: {name}"
        found = values.count(f"{value}\n".encode())
        if found != 1:
            raise BundleError(f"{CHART}/values.yaml names the image {name} {found} times; it must be once")
        pinned = f"{value}:{version}@{image.index_of(layout)['digest']}\n"
        values = values.replace(f"{value}\n".encode(), pinned.encode())
    return values


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(header(name, 0o644, size=len(content)), BytesIO(content))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
