"""Where the programs are, for whoever starts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rig.programs import choosing
from rig.errors import RigError


@dataclass(frozen=True)
class Programs:
    """The absolute path of each program by its name: `programs["kubelet"]`."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        if name in self.paths:
            return self.paths[name]
        if name in choosing.known_names():
            raise RigError(f"{name} was not asked for: name it to rig.programs.ensure()")
        raise RigError(f"the rig has no program named {name}; there is: {', '.join(sorted(self.paths))}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    @property
    def folders(self) -> frozenset[Path]:
        return frozenset(path.parent for path in self.paths.values())

    @property
    def cni(self) -> Path:
        return self["bridge"].parent
