"""Whether everything that runs was built from this checkout: otherwise a copy's soak would judge its original."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import built
from rig.errors import ComponentFailed
from rig.rig import CHECKOUT
from support.chain_stage import Chain

_PACKAGES: Final = (
    *("partage_base", "partage_plugins", "partage_scheduler", "partage_crishim", "partage_advertiser"),
    "partage_isolation",
)
_ASK: Final = (
    f"import {', '.join(_PACKAGES)}; print('\\n'.join({' + '.join(f'{name}.__path__' for name in _PACKAGES)}))"
)
DAEMONS: Final = ("crishim", "advertiser", "broker")
"""Suffixes of components' names; each runs on every node."""


def require_own(chain: Chain) -> None:
    for what, path in _found(chain):
        if not path.is_relative_to(CHECKOUT):
            raise ComponentFailed(
                f"{what} comes from {path}, and not from {CHECKOUT}: nothing of this checkout is tried"
            )


def _found(chain: Chain) -> Iterator[tuple[str, Path]]:
    yield "the preload library", built()
    yield "the scheduler", _interpreter(chain.scheduler.pid)
    yield from (("a package of the scheduler", path) for path in _asked((), chain.scheduler.env["PYTHONPATH"]))
    for node in chain.rig.nodes.values():
        yield from (("a package on a node", path) for path in _asked(node.machine.way_in, ""))
        ours = [each for each in (*node.components, *node.others) if each.name.endswith(DAEMONS)]
        if len(ours) < len(DAEMONS):
            raise ComponentFailed(f"{node.name} runs {[each.name for each in ours]} alone of ours")
        yield from ((each.name, _interpreter(each.pid)) for each in ours)


def _interpreter(pid: int) -> Path:
    return Path(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode())


def _asked(way_in: tuple[str, ...], python_path: str) -> list[Path]:
    argv = [*way_in, sys.executable, "-P", "-c", _ASK]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={"PYTHONPATH": python_path})
    return [Path(line) for line in done.stdout.splitlines()]
