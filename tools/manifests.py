#!/usr/bin/env python3

"""Renders the YAML of manifests/ from the chart, one file for each template, with the template's comments.

Each folder is rendered separately, and so is what only the extender needs: its own feature is switched on, everything
else has its default. Helm sorts objects by kind; here they are in their template's order, policies before the account
that they apply to. Other files are written by hand: kustomizations, and examples to copy. With --check nothing is
written, and files that would change are named with exit code 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rig.programs import ensure

MANIFESTS: Final = Path(__file__).resolve().parents[1] / "manifests"
CHART: Final = MANIFESTS / "chart"
FOLDERS: Final[Mapping[str, Sequence[str]]] = {
    "keys": (),
    "keys/certificates.yaml": ("extender.enabled=true", "extender.callers={any}"),
    "installer": (),
    "advertiser": ("installer.enabled=false",),
    "scheduler": (),
    "extender": ("extender.enabled=true", "extender.callers={any}"),
    "reservations": ("reservations.enabled=true", "reservations.image=pause"),
    "dra": ("mode=dra",),
    "sharepods": ("sharepods.enabled=true",),
    "ui": ("ui.enabled=true",),
    "quotas": ("quotas.enabled=true",),
    "claims": ("mode=dra", "dra.allocator=partage-scheduler"),
    "mutation": ("mutation.enabled=true",),
}
COPIED: Final = {"extender/kube-scheduler-configuration.yaml": "files/kube-scheduler-configuration.yaml"}
KUBERNETES: Final = "1.36.0"
DOCUMENT: Final = re.compile(r"^---\n# Source: partage/templates/(?P<file>\S+)\n", re.MULTILINE)
NAMED: Final = re.compile(r"^kind: .*\nmetadata:\n  name: .*\n(  namespace: .*\n)?", re.MULTILINE)


def rendered(helm: Path, what: str) -> dict[str, str]:
    """The files of a folder, or a single one, by their path below manifests/."""
    values = [word for value in FOLDERS[what] for word in ("--set", value)]
    command = [helm, "template", "partage", CHART, "--kube-version", KUBERNETES, *values]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - all of it is ours
    if done.returncode != 0:
        raise SystemExit(f"manifests: helm cannot render {what}: {done.stderr.strip()}")
    _, *parts = DOCUMENT.split(done.stdout)
    found: dict[str, list[str]] = {}
    for file, text in zip(parts[::2], parts[1::2], strict=True):
        if f"{file}/".startswith(f"{what}/"):
            found.setdefault(file, []).append(text.strip("\n") + "\n")
    return {file: "---\n".join(_ordered(file, documents)) for file, documents in found.items()}


def _ordered(file: str, documents: Sequence[str]) -> list[str]:
    template = (CHART / "templates" / file).read_text()

    if len(documents) == 1:
        return list(documents)

    def place(document: str) -> int:
        named = NAMED.search(document)
        if named is None:
            raise SystemExit(f"manifests: {file}: an object must begin with kind, metadata and name")
        return template.index(named[0])

    return sorted(documents, key=place)


def files(helm: Path) -> Iterator[tuple[Path, str]]:
    """Each file with its expected content."""
    for what in FOLDERS:
        for file, text in rendered(helm, what).items():
            yield MANIFESTS / file, text
    for file, source in COPIED.items():
        yield MANIFESTS / file, (CHART / source).read_text()


def main() -> int:
    stale, checks = 0, "--check" in sys.argv
    helm = ensure("helm")["helm"]
    for path, wanted in files(helm):
        if not path.exists() or path.read_text() != wanted:
            stale += 1
            name = path.relative_to(MANIFESTS)
            sys.stdout.write(f"manifests/{name}: {'not current; run `make manifests`' if checks else 'written'}\n")
            if not checks:
                path.parent.mkdir(exist_ok=True)
                path.write_text(wanted)
    return 1 if stale and checks else 0


if __name__ == "__main__":
    sys.exit(main())
