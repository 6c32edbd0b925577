"""The source modules of all our packages."""

from __future__ import annotations

import ast
import gc
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
SIMGPU: Final = "simgpu/partage_simgpu"
"""A separate distribution."""


@cache
def modules(*others: str) -> dict[Path, ast.Module]:
    """The modules of both wheels and of other packages, by path from the root."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = [*settings["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"], SIMGPU, *others]
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert len(paths) > 100
    gc.disable()  # the trees are kept, so nothing is garbage; searching for it would take twice as long as reading them
    try:
        return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    finally:
        gc.freeze()
        gc.enable()
