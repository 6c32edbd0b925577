"""Assembles a release in one folder: all of it, or nothing. Of two builders the second waits."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from importlib.metadata import distributions as distributions_at
from pathlib import Path
from typing import Any, Final

from partage_bundle import archive, bill_of_materials, cache, image, locks, native
from partage_bundle.errors import BundleError
from partage_bundle.process import ROOT, run, say
from partage_bundle.recipe import Machine
from partage_bundle.release import chart, distributions, krew, statements
from partage_bundle.release.statements import Content, Source
from partage_bundle.tree import DIRTY, every_tree, version_here

BILL: Final = "partage.cdx.json"
PROVENANCE: Final = "partage.intoto.json"
NOWHERE: Final = "https://releases.example/partage"
"""Stands for an address that was not given."""
_COPIED: Final = ("LICENSE", "manifests/artifacthub-repo.yml")
_REGISTRY: Final = re.compile(r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*")
_README: Final = Path(__file__).with_name("README.md.in")
_LOCKS: Final = (*locks.FOLDER.glob("*"), native.LOCK, ROOT / "requirements/dev.lock")


@dataclass(frozen=True)
class Asked:
    version: str
    machines: Sequence[Machine]
    pythons: Sequence[str] = distributions.PYTHONS
    """Pythons for which wheels of others are included."""
    at: str = NOWHERE
    """The address below which krew finds the archives."""
    registry: str = ""
    """The default registry of the chart's images."""


def write(target: Path, asked: Asked) -> None:
    """Replaces what was there."""
    _need_places(asked)
    part = target.with_name(f".{target.name}.part")
    with cache.lock(f"release-{target.name}"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _fill(part, asked)
        if asked.version != version_here():
            raise BundleError(f"the checkout changed while {asked.version} was built of it; begin again")
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)


def _need_places(asked: Asked) -> None:
    """Checks the addresses before anything is built. Raises `BundleError`."""
    if not asked.at.startswith("https://"):
        raise BundleError(f"{asked.at!r} is no address for archives of krew: expected https://HOST/FOLDER")
    if asked.registry and not _REGISTRY.fullmatch(asked.registry):
        raise BundleError(f"{asked.registry!r} is no registry: expected HOST/FOLDER, as registry.example/partage")


def _fill(place: Path, asked: Asked) -> None:
    contents, layouts = list[Content](), dict[str, Path]()
    archives: dict[Machine, tuple[str, str]] = {}
    (place / "krew").mkdir()
    for tree, built in every_tree(asked.machines, asked.version):
        name = image.name(tree)
        layout = layouts[name] = place / "images" / name
        digest = image.write(layout, tree, asked.version, built).digest
        parts = [_of_tree(name, machine, path) for machine, path in built]
        purl = f"pkg:oci/{name}@{digest.replace(':', '%3A')}"
        contents.append(Content("container", name, asked.version, _hex(digest), purl=purl, parts=parts))
        for machine, path in built if tree.name == krew.TREE else ():
            packed = place / "krew" / f"{krew.PROGRAM}-{asked.version}-linux-{machine.debian}.tar.gz"
            image.put(krew.archive(path, machine).file, packed)
            digest = _digest(packed)
            archives[machine] = packed.name, digest
            of_it = [_of_tree(name, machine, path)]
            contents.append(Content("file", packed.name, asked.version, digest, parts=of_it))
    (place / "krew/partage.yaml").write_bytes(krew.manifest(asked.version, asked.at, archives))
    packed = chart.write(place / "charts", asked.version, layouts, asked.registry)
    contents.append(Content("file", packed.name, asked.version, _digest(packed)))
    contents += _distributions(place, asked)
    for name in _COPIED:
        shutil.copyfile(ROOT / name, place / Path(name).name)
    (place / "README.md").write_text(_readme(asked, packed), encoding="utf-8")
    (place / BILL).write_text(statements.bill(asked.version, contents), encoding="utf-8")
    _seal(place, asked, layouts)


def _distributions(place: Path, asked: Asked) -> Iterator[Content]:
    wheels, sources = place / "wheels", place / "sdists"
    say(f"building wheels and sdists of {asked.version}")
    distributions.own(asked.machines, wheels, sources)
    distributions.others(asked.machines, asked.pythons, wheels)
    for path in sorted(sources.iterdir()):
        yield Content("file", path.name, asked.version, _digest(path))
    for path in sorted(wheels.iterdir()):
        (found,) = distributions_at(path=[str(path)])
        name = str(found.metadata["Name"])
        yield Content(
            "library",
            name,
            found.version,
            _digest(path),
            description=path.name,
            purl=bill_of_materials.python_purl(name, found.version),
            licence=str(found.metadata.json.get("license_expression", "")),
            parts=[_linked()] if name == "partage" else [],
        )


def _of_tree(name: str, machine: Machine, tree: Path) -> dict[str, Any]:
    """The parts that the tree lists, and what is linked into its programs."""
    parts = json.loads((tree / bill_of_materials.PARTS).read_bytes())["components"]
    linked = [_linked()] if (tree / "systemd").is_dir() else []
    named = f"{name} for {machine.debian}"
    return {"type": "application", "name": named, "components": [*parts, *linked]}


def _linked() -> dict[str, Any]:
    (version,) = re.findall(r"^ziglang==(\S+)", native.LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        "type": "library",
        "name": "ziglang",
        "version": version,
        "description": "its musl is linked into partage-oci",
        "purl": bill_of_materials.python_purl("ziglang", version),
    }


def _readme(asked: Asked, packed_chart: Path) -> str:
    text = _README.read_text(encoding="utf-8")
    said = {
        "VERSION": asked.version,
        "CHART": packed_chart.stem.removeprefix(f"{chart.NAME}-"),
        "PYTHONS": ", ".join(asked.pythons),
        "MACHINES": " and ".join(machine.name for machine in asked.machines),
        "AT": asked.at,
    }
    for word, what in said.items():
        text = text.replace(f"@{word}@", what)
    return text


def _seal(place: Path, asked: Asked, layouts: Mapping[str, Path]) -> None:
    """Writes the provenance, and the checksums of all files."""
    digests = {str(path.relative_to(place)): _digest(path) for path in place.rglob("*") if path.is_file()}
    indexes = {name: _hex(image.index_of(layout)["digest"]) for name, layout in layouts.items()}
    source = Source(
        run(("git", "rev-parse", "HEAD")).strip(),
        asked.version.endswith(DIRTY),
        {str(path.relative_to(ROOT)): _digest(path) for path in _LOCKS},
    )
    parameters = {
        "version": asked.version,
        "machines": [machine.name for machine in asked.machines],
        "pythons": list(asked.pythons),
        "at": asked.at,
        "registry": asked.registry,
    }
    said = statements.provenance({**digests, **indexes}, source, parameters)
    (place / PROVENANCE).write_text(said, encoding="utf-8")
    digests[PROVENANCE] = _digest(place / PROVENANCE)
    (place / archive.SUMS).write_bytes(archive.sums(digests))


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
