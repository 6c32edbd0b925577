"""Runs `partage` on a rig's node or on the host, as the identity that a test names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.client.cluster import Cluster
from rig.machine.components import Component
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


@contextmanager
def stopped(component: Component) -> Generator[None]:
    """Freeze the component.

    The program that entered the node for it stops when its child does, and must be resumed as well.
    """
    pid = component.pid
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    component.send(signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        if parent != os.getpid():
            os.kill(parent, signal.SIGCONT)
