"""Programs that stand in for `go` and `apt-get`: found on PATH as the real ones are, told by files what to do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig.programs import catalogue, golang
from rig.programs.cache import Cache

VERSION = catalogue.ETCD.version
KEY = golang.key(catalogue.ETCD)

# What a file named in $FAKE tells it: `fail` to say why and end, `hang` to stay until the file is gone.
GO = """#!/bin/sh
echo "$*" >>"$FAKE/calls"
case $1 in
    env) [ "$2" = GOVERSION ] && cat "$FAKE/goversion" || cat "$FAKE/changed"; exit ;;
    get) echo sums >go.sum; exit ;;
esac
env >"$FAKE/environment"
echo compiling
while [ -e "$FAKE/hang" ]; do sleep 0.05; done
if [ -e "$FAKE/fail" ]; then cat "$FAKE/fail"; exit 1; fi
mkdir -p bin
printf '#!/bin/sh\\ncat "%s/says"\\n' "$FAKE" >bin/server
chmod +x bin/server
"""
# Asked to install, it makes the program that $FAKE/provides names.
APT = """#!/bin/sh
echo "$*" >>"$FAKE/calls"
[ "$1" = install ] && [ -e "$FAKE/provides" ] && cp /bin/sh "$(cat "$FAKE/provides")"
[ "$1" = update ] && rm -f "$FAKE/no-lists"
[ "$1" = download ] && { [ ! -e "$FAKE/no-lists" ] || exit 100; touch frob_1.0_all.deb; }
exit 0
"""
# A package has one program, at the path that $FAKE/holds names.
DPKG_DEB = """#!/bin/sh
mkdir -p "$3/$(dirname "$(cat "$FAKE/holds")")"
cp /bin/sh "$3/$(cat "$FAKE/holds")"
"""


Start = Callable[..., subprocess.Popen[str]]


@dataclass(frozen=True)
class Fake:
    """How the programs are told what to do, and what they were asked."""

    folder: Path
    cache: Cache

    def tell(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    def forget(self, name: str) -> None:
        (self.folder / name).unlink()

    def calls(self, verb: str) -> list[str]:
        file = self.folder / "calls"
        return [line for line in file.read_text().splitlines() if line.split()[0] == verb] if file.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        lines = (self.folder / "environment").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def entry(self) -> Path:
        return self.cache.entry(KEY)


def put(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def until(what: Callable[[], object], within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
