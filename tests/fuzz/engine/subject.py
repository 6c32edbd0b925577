"""Finds fuzz targets and reads their descriptions."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from fuzz.engine.execution import Target
from fuzz.engine.mutation import Change

MACHINERY: Final = "runner"


class NoSubject(Exception):
    """The target does not exist or is incomplete."""


@dataclass(frozen=True)
class Subject:
    """A target, its invariant in one sentence, and its seeds."""

    name: str
    path: Path
    invariant: str
    target: Target
    seeds: tuple[bytes, ...]
    regressions: tuple[bytes, ...]
    dictionary: tuple[bytes, ...]
    change: Change | None
    """A change that keeps the format of its inputs, if it has one."""


def names_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != MACHINERY and not path.stem.startswith("_"))


def load(folder: Path, name: str) -> Subject:
    if name not in names_in(folder):
        raise NoSubject(f"no fuzz target named {name}; there is: {' '.join(names_in(folder)) or 'none'}")
    module = _imported(folder / f"{name}.py")
    missing = [part for part in ("__doc__", "target", "SEEDS") if not getattr(module, part, None)]
    if missing:
        raise NoSubject(f"fuzz target {name} has no {', '.join(missing)}")
    return Subject(
        name=name,
        path=folder / f"{name}.py",
        invariant=(module.__doc__ or "").strip().splitlines()[0],
        target=module.target,
        seeds=tuple(module.SEEDS),
        regressions=tuple(path.read_bytes() for path in sorted((folder / "regressions" / name).glob("*"))),
        dictionary=tuple(getattr(module, "DICTIONARY", ())),
        change=getattr(module, "change", None),
    )


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fuzz_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise NoSubject(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
