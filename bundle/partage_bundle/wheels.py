"""Python packages: the locked wheels of others, and our own of this checkout. uv installs them, for any machine."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from partage_bundle import cache, interpreter, locks, objects, recipe
from partage_bundle.debian import copy
from partage_bundle.errors import NotFetched, StepFailed
from partage_bundle.process import BIN, ROOT, run, say
from partage_bundle.recipe import Machine, Tree

_UV: Final = BIN / "uv"
_OLDEST: Final = "315532800"
"""1980: the oldest time that a zip archive can represent."""


def install_others(tree: Tree, machine: Machine, into: Path) -> None:
    """Installs all that the tree's lock names."""
    lock = locks.wheels(tree.name)
    say(f"installing what {lock.name} names for {machine.name}")
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        install_locked(lock, Path(folder), "--python-platform", machine.wheels, "--python-version", recipe.PYTHON)
        _keep(Path(folder), into)
    objects.open_to_the_interpreter(into)


def own(folder: Path) -> Path:
    """Builds our wheel of this checkout into the folder."""
    build(ROOT, folder, "--wheel")
    return next(folder.glob("*.whl"))


def build(project: Path, into: Path, what: str) -> None:
    """Builds `what`, `--wheel` or `--sdist`, into a folder, with a fixed timestamp."""
    env = {**environment(), "SOURCE_DATE_EPOCH": _OLDEST}
    run(
        (
            _UV,
            "build",
            "-q",
            what,
            "--no-build-isolation",
            "--offline",
            "--python",
            sys.executable,
            "-o",
            into,
            project,
        ),
        env=env,
    )


def install_own(wheel: Path, into: Path) -> None:
    """Installs it beside the wheels of others."""
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        place, kept = Path(folder) / "place", Path(folder) / "kept"
        run((_UV, *_INSTALL, "--no-cache", "--target", place, "--offline", wheel), env=environment())
        _keep(place, kept)
        interpreter.here().compile(kept)
        shutil.copytree(kept, into, dirs_exist_ok=True)


def write_lock(tree: Tree) -> Path:
    """Uses the versions of the development environment, which are the tested ones."""
    lock = locks.wheels(tree.name)
    wanted = locks.requirements((ROOT / "pyproject.toml").read_text(encoding="utf-8"), tree.extra)
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "requirements.in"
        asked.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        platform = ("--python-platform", "linux", "--python-version", recipe.PYTHON)
        form = ("--generate-hashes", "--no-header", "--no-annotate", "-c", ROOT / "requirements/dev.lock")
        run((_UV, "pip", "compile", "-q", *platform, *form, "-o", lock, asked), env=environment())
    return lock


def environment() -> dict[str, str]:
    """The environment of uv, whose cache is kept with ours."""
    return {"UV_CACHE_DIR": str(cache.root() / "uv"), "UV_PYTHON_DOWNLOADS": "never", **_certificates()}


def install_locked(lock: Path, into: Path, *flags: str) -> None:
    """Tries the cache alone first, so that what was fetched once needs no network. Raises `NotFetched`."""
    words: tuple[str | Path, ...] = (_UV, *_INSTALL, "--require-hashes", "--target", into, *flags, "-r", lock)
    try:
        run((*words, "--offline"), env=environment())
    except StepFailed:
        try:
            run(words, env=environment())
        except StepFailed as error:
            raise NotFetched(f"cannot install what {lock} names: {error}") from error


_INSTALL: Final[tuple[str, ...]] = (
    "pip",
    "install",
    "-q",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--link-mode",
    "hardlink",
)


def _certificates() -> dict[str, str]:
    given = os.environ.get("UV_SYSTEM_CERTS")
    return {"UV_SYSTEM_CERTS": given or "true"} if Path("/etc/ssl/certs/ca-certificates.crt").exists() else {}


def _keep(source: Path, into: Path) -> None:
    for path in sorted(source.rglob("*")):
        inside = str(path.relative_to(source))
        if path.is_file() and recipe.is_kept_of_wheels(inside):
            copy(path, into / inside)
