"""The whole bundle, for all machines, twice from what was fetched: the archives are the same to the bit.

    make soak-bundle
    tools/named soak bundle --fetch      # fetches all of it again first

Each build has a cache of its own, in another folder; the second one is for a user with another umask, time zone and
seed of hashes. `make test` does as much for the tree of nodes of this machine, without the compiler of C.

stdout: one JSON object with the seconds of each build, and the bytes of each tree as it lies on disk and packed.
Exit status: 0 done, 1 a build failed, 3 the second build is another one, or a tree is larger than nodes bear.
"""

from __future__ import annotations

import argparse
import json
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

_WRONG: Final = 3
_FETCHED: Final = ("debs", "uv")
_MOST_OF_NODES: Final = (100_000_000, 30_000_000)
"""Bytes of their tree, on disk and packed."""
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
        done = {"seconds": seconds, "processors": os.cpu_count(), "archive": archives[0].stat().st_size, "trees": trees}
        sys.stdout.write(json.dumps(done) + "\n")
    if digests[0] != digests[1]:
        told = [f"{path.name} {digest}" for path, digest in zip(archives, digests, strict=True)]
        sys.stderr.write(f"WRONG: the first archive was {told[0]}, the second is {told[1]}\n")
    large = [name for name, sizes in trees.items() if name.startswith("partage-node-") and _is_large(sizes)]
    for name in large:
        sys.stderr.write(f"WRONG: {name} is larger than {_MOST_OF_NODES}: {trees[name]}\n")
    return 0 if digests[0] == digests[1] and not large else _WRONG


def _build(folder: Path, source: Path, *, fetch: bool, umask: int, env: dict[str, str]) -> float:
    """As people build it."""
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
    """By the name of each: its bytes on disk, and packed."""
    found: dict[str, tuple[int, int]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.islnk():
                packed = tar.extractfile(member)
                assert packed is not None
                with tarfile.open(fileobj=packed, mode="r:gz") as tree:
                    found[Path(member.name).name] = (sum(each.size for each in tree), packed.tell())
    return found


def _is_large(sizes: tuple[int, int]) -> bool:
    return any(size > most for size, most in zip(sizes, _MOST_OF_NODES, strict=True))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except subprocess.CalledProcessError:
        raise SystemExit(1) from None
