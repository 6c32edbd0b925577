"""Runs `partage` on a rig's node or on the host, as the identity that a test names."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from rig.client.cluster import Cluster
from rig.nodes.machine import Machine
from rig.patience import patience_s
from unit.cli.program import PARTAGE, environment

Done = subprocess.CompletedProcess[str]


def partage(*words: str, inside: Machine | None = None, root: str = "/") -> Done:
    """Run it to the end, with any exit status."""
    argv = (*(inside.way_in if inside else ()), *PARTAGE, "--root", root, *words)
    kept = {name: value for name, value in environment().items() if name != "KUBECONFIG"}
    return subprocess.run(argv, env=kept, capture_output=True, text=True, check=False, timeout=patience_s())


def config_of(cluster: Cluster) -> str:
    """The kubeconfig of an identity."""
    return str(cluster.kubectl.kubeconfig)


def findings(machine: Machine, *words: str) -> dict[str, dict[str, Any]]:
    """The doctor's findings on a node, by check."""
    done = partage("doctor", "-o", "json", *words, inside=machine)
    assert done.returncode in {0, 3}, f"{done.returncode}: {done.stdout}{done.stderr}"
    return {each["check"]: each for each in json.loads(done.stdout)["findings"]}


def statuses(found: dict[str, dict[str, Any]], *checks: str) -> dict[str, str]:
    """Status of each check."""
    return {check: found[check]["status"] for check in checks}
