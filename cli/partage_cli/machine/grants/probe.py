"""Asks the container engines of this machine whether they can take a grant."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from partage_cli.machine.grants.engines import EngineName, why_not
from partage_plugins.errors import Refused

_INFO: Final[Mapping[EngineName, tuple[str, ...]]] = {
    "docker": ("info", "--format", "{{json .}}"),
    "podman": ("info", "--format", "json"),
}
_WITHIN_S: Final = 20.0


def usable(engines: Sequence[EngineName]) -> EngineName:
    """The first of these that can; raises `Refused`, which says of each why it can't."""
    reasons = list[str]()
    for name in engines:
        path = shutil.which(name)
        if path is None:
            continue
        why = _why_not(name, path)
        if why is None:
            return name
        reasons.append(why)
    raise Refused(
        "; ".join(reasons)
        or f"no {' or '.join(engines)} is on the PATH, for whose containers a grant would be; install one, say "
        "--engine other for another engine that takes CDI devices, or run the image by: partage run"
    )


def _why_not(name: EngineName, path: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  an engine of the machine
            (path, *_INFO[name]), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        return f"`{name} info` took longer than {_WITHIN_S:g} s; is its daemon well?"
    errors = " ".join(done.stderr.decode(errors="replace").split())
    return why_not(name, done.stdout, errors or f"status {done.returncode}")
