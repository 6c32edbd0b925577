"""Whether a container engine can take a grant, by what it says of itself: `docker info`, `podman info`. Pure.

It must put CDI devices into containers, read the folder in which we put their files, and run as root: hooks of one that
does not can't ask the broker.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct, field

EngineName = Literal["docker", "podman"]
ENGINES: Final[tuple[EngineName, ...]] = ("docker", "podman")
_FIRST: Final = {"docker": (25,), "podman": (4, 1)}
_OURS: Final = frozenset(("/var/run/cdi", "/run/cdi"))
_ROOTLESS: Final = "name=rootless"


class _DockerInfo(Struct, frozen=True):
    """Of `docker info --format '{{json .}}'`."""

    version: str = field(name="ServerVersion", default="")
    folders: tuple[str, ...] | None = field(name="CDISpecDirs", default=None)
    security: tuple[str, ...] | None = field(name="SecurityOptions", default=None)
    errors: tuple[str, ...] | None = field(name="ServerErrors", default=None)


class _Security(Struct, frozen=True):
    rootless: bool = False


class _Host(Struct, frozen=True):
    security: _Security = _Security()


class _Version(Struct, frozen=True):
    version: str = field(name="Version")


class _PodmanInfo(Struct, frozen=True):
    """Of `podman info --format json`; `docker` may be a name of podman's."""

    host: _Host
    version: _Version


_said: Final = msgspec.json.Decoder(_PodmanInfo), msgspec.json.Decoder(_DockerInfo)


def why_not(name: EngineName, info: bytes, errors: str) -> str | None:
    """Why its containers can't have a grant, in a sentence that says what to do; None where they can.

    `errors` is what it said beside.
    """
    for decoder in _said:
        try:
            found = decoder.decode(info)
        except (msgspec.MsgspecError, ValueError):
            continue
        return _of_podman(name, found) if isinstance(found, _PodmanInfo) else _of_docker(name, found, errors)
    said = errors or info[:80].decode(errors="replace")
    return f"`{name} info` says nothing that could be read: {said!r:.200}; is it {name}?"


def _of_podman(name: EngineName, said: _PodmanInfo) -> str | None:
    version = said.version.version
    if not _is_from(version, _FIRST["podman"]):
        return f"podman {version} puts no CDI devices into containers; 4.1 is the first that does: upgrade it"
    if said.host.security.rootless:
        return _rootless(name, "ask with sudo, and run the container with sudo podman")
    return None


def _of_docker(name: EngineName, said: _DockerInfo, errors: str) -> str | None:
    if not said.version:
        return f"{name}'s daemon does not answer: {'; '.join(said.errors or ()) or errors}"
    if not said.folders and not _is_from(said.version, _FIRST["docker"]):
        return f"docker {said.version} puts no CDI devices into containers; 25 is the first that can: upgrade it"
    if not said.folders:
        return (
            f"docker {said.version} is not set to put CDI devices into containers: say "
            '{"features": {"cdi": true}} in /etc/docker/daemon.json and restart docker'
        )
    if _OURS.isdisjoint(said.folders):
        folders = ", ".join(said.folders)
        return f"docker looks for CDI files in {folders} alone: add /var/run/cdi to cdi-spec-dirs in daemon.json"
    if any(each.startswith(_ROOTLESS) for each in said.security or ()):
        return _rootless(name, "use a docker that runs as root")
    return None


def _rootless(name: EngineName, what: str) -> str:
    return f"this {name} runs without root, so its containers can't be told to the broker: {what}"


def _is_from(version: str, first: tuple[int, ...]) -> bool:
    """Words of distributions, as in `24.0.7+dfsg1` and `5.0.0-dev`, do not count."""
    numbers = [
        part for part in version.replace("+", ".").replace("-", ".").split(".")[: len(first)] if part.isdecimal()
    ]
    return tuple(map(int, numbers)) >= first
