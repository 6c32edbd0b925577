"""Makes one folder that can ask a card on a machine with only a driver and Python: `tools/real carry`.

It has our sources, their packages for that Python, and the C programs, built here. It is made under another name and
renamed, so under its own name it is complete.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import built as built_library
from partage_isolation.library.pages import built_page
from partage_simgpu.build import built as built_simulation
from real_card.carried import BUILT, COMMIT, PYTHON, SUMS, sum_of
from real_card.ground import CACHE, ROOT, built_programs, commit

FOLDER: Final = CACHE / "carried"
MOST_BYTES: Final = 48 << 20
_PACKAGES: Final = ("cffi", "click", "cryptography", "hpack", "msgspec", "protobuf", "pycparser", "structlog", "uvloop")
_SOURCES: Final = (
    *(
        "tools/real",
        "tests/real_card",
        "tests/support",
        "tests/rig/*.py",
        "tests/rig/client",
        "plugins/partage_plugins",
    ),
    *("plugins/gpu/partage_gpu", "base/partage_base", "isolation/partage_isolation", "isolation/driver"),
    *("isolation/preload/hooks/hooks.def", "simgpu/partage_simgpu", "simgpu/native/Makefile", "simgpu/native/profiles"),
)
_NOT_CARRIED: Final = shutil.ignore_patterns("objects", "log", "lock", "link")


class NotCarried(Exception):
    """The folder was not made; the message says why."""


def carry(folder: Path, python: str) -> int:
    """Make the folder; return its size in bytes."""
    if folder.exists() and not (folder / COMMIT).is_file():
        raise NotCarried(f"{folder} is there, and is no carried folder; remove it or name another one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".carried-", dir=folder.parent) as name:
        fresh = Path(name) / "carried"
        _fill(fresh, python)
        size = sum(path.lstat().st_size for path in fresh.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise NotCarried(f"it has {size >> 20} MiB, and may have {MOST_BYTES >> 20}")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return size


def _fill(folder: Path, python: str) -> None:
    for source in _tracked():
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, folder / source)
    _install(folder / BUILT / "site", python)
    for name, built in (("preload", built_library), ("simgpu", built_simulation), ("programs", built_programs)):
        shutil.copytree(built(), folder / BUILT / name, ignore=_NOT_CARRIED)
    shutil.copy(built_page(), folder / BUILT / "preload")
    (folder / COMMIT).write_text(f"{commit()}\n")
    (folder / PYTHON).write_text(f"{python}\n")
    lines = [f"{sum_of(path)}  {path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / SUMS).write_text("".join(lines))


def _tracked() -> Iterator[Path]:
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_SOURCES]
    said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    yield from (Path(name) for name in said.split("\0") if name and (ROOT / name).is_file())


def _install(site: Path, python: str) -> None:
    locked = re.findall(r"(?m)^(([\w-]+)==(?:.*\\\n)*.*)", (ROOT / "requirements/dev.lock").read_text())
    wanted = [text for text, name in locked if name in _PACKAGES]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("\n".join(wanted))
        lock.flush()
        argv = [
            *(str(ROOT / ".venv/bin/uv"), "pip", "install", "--quiet", "--require-hashes", "--no-deps"),
            *("--link-mode", "copy"),  # stripping must not change another installation's files
            *("--only-binary", ":all:", "--python-platform", "x86_64-manylinux_2_28", "--python-version", python),
            *("--target", str(site), "-r", lock.name),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotCarried(f"packages for Python {python}: {done.stderr.strip()[-300:]}")
    for path in (site / ".lock", site / "bin"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    subprocess.run(["strip", "--strip-unneeded", *site.rglob("*.so")], check=True)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/real carry", description="Makes one folder that asks a card elsewhere."
    )
    parser.add_argument("--python", default="3.12", help="the Python of that machine (%(default)s)")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="where it goes (%(default)s)")
    given = parser.parse_args(words)
    if platform.machine() != "x86_64":
        sys.stderr.write("real: what is built here is not for x86-64\n")
        return 1
    try:
        size = carry(given.to, given.python)
    except (NotCarried, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"real: {error}\n")
        return 1
    sys.stdout.write(f"{os.path.relpath(given.to)}: {size / (1 << 20):.1f} MiB, of commit {commit()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
