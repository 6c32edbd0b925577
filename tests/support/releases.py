"""Releases of partage, made by the commands of the page "Install", from this checkout and from others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rig.rig import CHECKOUT, Rig


@dataclass(frozen=True)
class Release:
    version: str
    chart: Path


def release(rig: Rig, checkout: Path, folder: Path) -> Release:
    """Build a release with that checkout's tools, push it into the rig's registry, and unpack it in that folder."""
    *_, archive = bundle(checkout, "all", "--out", str(folder)).splitlines()
    bundle(checkout, "push", f"{rig.registry.address}/partage", "--plain-http", "--out", str(folder))
    subprocess.run(("tar", "-xf", archive, "-C", folder), check=True)
    Path(archive).unlink()
    (chart,) = folder.glob("partage-*/chart")
    return Release(chart.parent.name.removeprefix("partage-"), chart)


def clone(commit: str, folder: Path) -> Path:
    """Clone that commit of this repository; nothing is written into the repository itself."""
    git("clone", "--quiet", "--shared", "--no-checkout", str(CHECKOUT), str(folder))
    git("-C", str(folder), "checkout", "--quiet", "--detach", commit)
    return folder


def newer_checkout(folder: Path) -> Path:
    """A checkout of a commit after this one with the same content."""
    clone("HEAD", folder)
    identity = ("-c", "user.name=next", "-c", "user.email=next@example.invalid")
    git("-C", str(folder), *identity, "commit", "--quiet", "--allow-empty", "--message", "Another version")
    return folder


def commit_of(name: str) -> str | None:
    """The full hash; None if there is no such commit here."""
    words = ("git", "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def git(*words: str) -> None:
    subprocess.run(("git", *words), cwd=CHECKOUT, check=True)


def bundle(checkout: Path, *words: str) -> str:
    """Output of `tools/bundle` of a checkout without an environment, using this one's."""
    argv = (sys.executable, "-P", "-m", "partage_bundle", *words)
    env = {**os.environ, "PYTHONPATH": str(checkout / "bundle")}
    return subprocess.run(argv, cwd=checkout, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
