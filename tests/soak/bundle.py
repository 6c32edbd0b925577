"""Builds the whole bundle for all machines twice from the same downloads: the archives are identical to the bit.

    make soak-bundle
    tools/named soak bundle --fetch      # fetches all of it again first

Each build has a separate cache in another folder; the second one runs as a user with another umask, time zone and hash
seed. `make test` does the same for this machine's node tree, without the C compiler.

The last line has the seconds of each build, and the bytes of each tree on disk and packed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from hashlib import file_digest
from pathlib import Path
from typing import Final

from partage_bundle import cache, recipe
from partage_bundle.process import ROOT
from soak.harness import ended

_FETCHED: Final = ("debs", "uv")
_MOST_OF_NODES: Final = (100_000_000, 30_000_000)
"""Bytes of the nodes' tree, on disk and packed."""
_OTHERWISE: Final = {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak bundle", description="builds all of it twice and compares")
    parser.add_argument("--fetch", action="store_true", help="fetch everything again, instead of taking the cache's")
    given = parser.parse_args()
    with cache.workplace() as folder:
        first = folder / "first"
        seconds = [_build(first, cache.root(), fetch=given.fetch, umask=0o022, env={})]
        seconds.append(_build(folder / "second", first / "cache", fetch=False, umask=0o077, env=_OTHERWISE))
        archives = [_archive(folder / each) for each in ("first", "second")]
        digests = [_digest(each) for each in archives]
        trees = _trees(archives[0])
        trees, archive = _trees(archives[0]), archives[0].stat().st_size
    wrong = [
        f"{name} is larger than {_MOST_OF_NODES}: {sizes}" for name, sizes in trees.items() if _is_large(name, sizes)
    ]
    if digests[0] != digests[1]:
        wrong.append(f"the first archive was {digests[0]}, the second is {digests[1]}")
    return ended("bundle", wrong, seconds=seconds, processors=os.cpu_count(), archive=archive, trees=trees)


def _build(folder: Path, source: Path, *, fetch: bool, umask: int, env: dict[str, str]) -> float:
    """Build as users do."""
    (folder / "cache").mkdir(parents=True)
    for name in () if fetch else _FETCHED:
        (folder / "cache" / name).symlink_to(source / name)
    began = time.monotonic()
    words = [word for machine in recipe.MACHINES for word in ("--arch", machine)]
    subprocess.run(
        (ROOT / "tools/bundle", "all", *words, "--out", folder / "out"),
        env={**os.environ, "PARTAGE_BUNDLE_CACHE": str(folder / "cache"), **env},
        umask=umask,
        stdout=sys.stderr,
        check=True,
    )
    return round(time.monotonic() - began, 1)


def _archive(folder: Path) -> Path:
    (found,) = (folder / "out").glob("partage-*.tar")
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _trees(archive: Path) -> dict[str, tuple[int, int]]:
    """For each tree, its bytes on disk and packed."""
    found: dict[str, tuple[int, int]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.islnk():
                packed = tar.extractfile(member)
                assert packed is not None
                with tarfile.open(fileobj=packed, mode="r:gz") as tree:
                    found[Path(member.name).name] = (sum(each.size for each in tree), packed.tell())
    return found


def _is_large(name: str, sizes: tuple[int, int]) -> bool:
    return name.startswith("partage-node-") and any(
        size > most for size, most in zip(sizes, _MOST_OF_NODES, strict=True)
    )


if __name__ == "__main__":
    raise SystemExit(main())
