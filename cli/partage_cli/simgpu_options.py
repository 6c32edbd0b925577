"""Options that the commands of ``partage simgpu`` share: the folder and the node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from partage_simgpu.node import Nodes, is_node_name


def _nodes(context: click.Context, _parameter: click.Parameter, value: Path | None) -> Nodes:
    if value is not None:
        return Nodes(value)
    if os.geteuid() == 0:
        root = context.find_root().obj
        return Nodes((root if isinstance(root, Path) else Path("/")) / "var/lib/partage/simgpu")
    return Nodes(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "partage/simgpu")


def _name(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if is_node_name(value):
        return value
    raise click.BadParameter(f"{value!r} is no node's name; allowed: a-z, 0-9 and -, at most 63")


DIR: Final = click.option(
    "--dir",
    "nodes",
    type=click.Path(path_type=Path),
    callback=_nodes,
    envvar="PARTAGE_SIMGPU_DIR",
    help="The folder of the nodes.  [default: ROOT/var/lib/partage/simgpu; not as root: ~/.local/state/partage/simgpu]",
)
NAME: Final = click.argument("name", callback=_name)
