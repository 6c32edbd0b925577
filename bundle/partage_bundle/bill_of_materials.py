"""Metadata of a tree: MANIFEST, which verifies a copy, and the list of its parts for auditors. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from partage_bundle.locks import Package

MANIFEST: Final = "MANIFEST"
VERSION: Final = "VERSION"
PARTS: Final = "sbom.json"


@dataclass(frozen=True)
class ManifestEntry:
    path: str
    mode: int
    digest: str


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    licence: str


def manifest(entries: Iterable[ManifestEntry]) -> str:
    """One line a file: mode, SHA-256, path. The path is last, since it may contain spaces."""
    return "".join(
        f"{entry.mode:04o} {entry.digest} {entry.path}\n" for entry in sorted(entries, key=lambda each: each.path)
    )


def parts(name: str, version: str, architecture: str, packages: Iterable[Package], wheels: Iterable[Wheel]) -> str:
    """CycloneDX, without a timestamp or serial number: equal parts give equal text."""
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": version}},
        "components": [
            *(_of_debian(package, architecture) for package in sorted(packages, key=lambda each: each.name)),
            *(_of_python(wheel) for wheel in sorted(wheels, key=lambda each: each.name)),
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def python_purl(name: str, version: str) -> str:
    """The package URL of a package of PyPI."""
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


def _of_debian(package: Package, architecture: str) -> dict[str, object]:
    version = package.version.replace(":", "%3A").replace("+", "%2B")
    return {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": f"pkg:deb/debian/{package.name.replace('+', '%2B')}@{version}?arch={architecture}&distro=debian-12",
        "hashes": [{"alg": "SHA-256", "content": package.digest}],
    }


def _of_python(wheel: Wheel) -> dict[str, object]:
    said: dict[str, object] = {
        "type": "library",
        "name": wheel.name,
        "version": wheel.version,
        "purl": python_purl(wheel.name, wheel.version),
    }
    return {**said, "licenses": [{"license": {"name": wheel.licence}}]} if wheel.licence else said
