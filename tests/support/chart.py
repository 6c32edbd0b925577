"""The real helm with our chart: rendered here, or installed as one identity."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rig.client.kubectl import Ran
from rig.errors import NeverHappened, RigError
from rig.identity.people import OUR_NAMESPACE
from rig.identity.permissions import FOLDER, Manifest
from rig.patience import patience_s
from rig.programs import ensure

CHART: Final = FOLDER / "chart"
RELEASE: Final = "partage"
INTO: Final = ("--namespace", OUR_NAMESPACE)
KUBERNETES: Final = "1.36.0"
"""The Kubernetes version to render for without a cluster."""
EVERYTHING: Final = (
    *("extender.enabled=true", "kubeScheduler.enabled=true", "sharepods.enabled=true", "quotas.enabled=true"),
    *("reservations.enabled=true", "reservations.image=pause", "mutation.enabled=true", "ui.enabled=true"),
    *("criticalQuota.enabled=true", "dra.enabled=true", "dra.cards=all", "dra.parts={2,4}"),
    "dra.allocator=partage-scheduler",
)
"""Every option that works in a cluster without the Prometheus operator."""
UNCHECKED: Final = "settingsCheck.enabled=false"
"""For clusters in which none of our pods run: helm would wait for the Job that checks the settings."""
_SOURCE: Final = "# Source: partage/templates/"


def helm_in(home: Path, kubeconfig: Path | None = None) -> Helm:
    return Helm(ensure("helm")["helm"], home, kubeconfig)


@dataclass(frozen=True)
class Helm:
    """The program, a home for its caches and perhaps a kubeconfig. The machine's own settings have no effect."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *words: str | Path, values: Sequence[str] = ()) -> str:
        """Helm's output; raises `RigError` with its error message."""
        ran = self.tried(*words, values=values)
        if ran.status != 0:
            raise RigError(f"helm {words[0]}: status {ran.status}: {ran.err.strip()}")
        return ran.out

    def tried(self, *words: str | Path, values: Sequence[str] = ()) -> Ran:
        """Run helm; `values` are passed by --set."""
        given = [word for value in values for word in ("--set", value)]
        where = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        try:
            done = subprocess.run(
                [self.program, *where, *words, *given],
                capture_output=True,
                text=True,
                timeout=patience_s(),
                check=False,
                cwd=self.home,
                env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            )
        except subprocess.TimeoutExpired as late:
            raise NeverHappened(f"helm {words[0]}: did not end within {late.timeout:.0f} s") from late
        return Ran(done.returncode, done.stdout, done.stderr)

    def template(self, *values: str, version: str = KUBERNETES) -> str:
        return self.run("template", RELEASE, CHART, "--kube-version", version, values=values)

    def rendered(self, *values: str, folders: Sequence[str] = ()) -> list[Manifest]:
        """The rendered objects: those of these template folders, or all."""
        documents = self.template(*values).split("\n---\n")
        chosen = [f"{_SOURCE}{folder}/" for folder in folders] or [_SOURCE]
        return [
            msgspec.yaml.decode(document, type=Manifest)
            for document in documents
            if any(source in document for source in chosen)
        ]

    def refusal(self, *values: str, version: str = KUBERNETES) -> str:
        """The error message instead of a rendering."""
        ran = self.tried("template", RELEASE, CHART, "--kube-version", version, values=values)
        if ran.status == 0:
            raise AssertionError(f"helm renders {values}")
        return ran.err


def by_name(manifests: Sequence[Manifest]) -> dict[tuple[str, ...], Any]:
    """Manifests by kind, namespace and name."""
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in manifests}
