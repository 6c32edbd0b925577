"""Two commits on one node, each way: daemons, library and broker of both work together while containers run.

    make soak-neighbours                             # with the first commit whose records have today's forms
    tools/named soak neighbours --before COMMIT

`make test` compares every format that outlives a process with its record. This soak runs the programs: containers of
the earlier commit under the current broker and crishim, and current containers under the earlier ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.client.pods import Pod
from rig.errors import RigError
from rig.rig import CHECKOUT, RigSettings, running
from soak.harness import ended, options, say
from support.crishim_stage import NODE, PLUGINS_FOLDER
from support.isolation_stage import (
    IsolationStage,
    ask,
    broker,
    install_library,
    isolating,
    memory,
    node_settings,
)

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-neighbours"
WHERE: Final = CHECKOUT / ".cache/neighbours"
FLOORS: Final = ("plugins", "base", "plugins/gpu", "plugins/dialects", "isolation", "crishim")
_RECORDED: Final = "tests/unit/installation/forms/recorded.json"
_NO_MEMORY: Final = "cuMemAlloc_v2 2"


def main() -> int:
    """The default is the first commit that recorded today's formats."""
    before = unpacked(options("neighbours", before="").before or _first_with_these_forms())
    objects = Path(_printed(before, "from partage_isolation.library.objects import built; print(built())"))
    key, wrong = Ed25519PrivateKey.generate(), list[Exception]()
    with running(RigSettings(nodes={NODE: node_settings(key)}), say=say, keep_logs=LOGS) as rig:
        stage = isolating(rig, key)
        try:
            both_ways(stage, before, objects)
        except (AssertionError, RigError) as error:
            wrong.append(error)
    return ended("neighbours", wrong, before=before.name)


def both_ways(stage: IsolationStage, before: Path, objects: Path) -> None:
    """A program that began under the other version allocates memory in each pod, within its limit and beyond."""
    run_daemons(stage, before)
    install_library(stage.machine, objects)
    old = limited(stage, "the library of before, under the broker of before")
    run_daemons(stage, CHECKOUT)
    require_limited(old, "the library of before, under the broker of now", taken_mib=1000)
    install_library(stage.machine)
    new = limited(stage, "the library of now, under the broker of now")
    run_daemons(stage, before)
    require_limited(new, "the library of now, under the broker of before", taken_mib=1000)
    require_limited(old, "the library of before, back under its broker", taken_mib=2000)
    latest = limited(stage, "the library of now, started by crishim and broker of before")
    for pod in (old, new, latest):
        assert pod.refresh()["status"]["containerStatuses"][0]["restartCount"] == 0


def run_daemons(stage: IsolationStage, tree: Path) -> None:
    """The broker and crishim of a tree take over, as after an upgrade or downgrade."""
    paths = ":".join(str(tree / floor) for floor in FLOORS)
    stage.broker.stop()
    daemon = broker()
    stage.broker = stage.node.run(replace(daemon, env={**daemon.env, "PYTHONPATH": paths}))
    stage.replace(env={"PYTHONPATH": f"{paths}:{PLUGINS_FOLDER}"})


def limited(stage: IsolationStage, what: str) -> Pod:
    pod = stage.limited_pod(memory(4096)).wait_running()
    assert ask(pod, "take 1000") == "took 1000", what
    say(f"{what}: it has its memory")
    return pod


def require_limited(pod: Pod, what: str, *, taken_mib: int) -> None:
    assert ask(pod, "take 1000") == "took 1000", what
    assert ask(pod, f"take {4096 - taken_mib}") == _NO_MEMORY, what
    say(f"{what}: it gets more, and its limit holds")


def unpacked(commit: str) -> Path:
    """The tree of a commit, unpacked once."""
    name = _git("rev-parse", "--short=12", f"{commit}^{{commit}}")
    tree = WHERE / name
    if not tree.exists():
        fresh = tree.with_name(f".{name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        _output(["sh", "-c", f"git archive {name} | tar -x -C {fresh}"], os.environ, CHECKOUT)
        fresh.rename(tree)
    return tree


def _first_with_these_forms() -> str:
    return _git("log", "-1", "--format=%H", "--diff-filter=AM", "--", _RECORDED) or "HEAD"


def _printed(tree: Path, program: str) -> str:
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": ":".join(str(tree / each) for each in FLOORS)}
    return _output([sys.executable, "-P", "-c", program], environment, tree)


def _git(*words: str) -> str:
    return _output(["git", *words], os.environ, CHECKOUT)


def _output(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=folder)
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
