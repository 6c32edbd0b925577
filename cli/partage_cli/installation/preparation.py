"""The steps of `partage node install` after the look, which don't touch kubelet and are verified first.

`unpack` puts the tree in place; `units` starts broker and crishim beside a kubelet that does not use them. Then the
container runtime is called through crishim, as kubelet will.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Final

import msgspec

from partage_base.cri import CriError, UnaryClient
from partage_base.files import write_whole
from partage_cli.doctor.daemons import condition_of
from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import Site, crishim_of
from partage_cli.installation.journal import Change, Plan, StepName
from partage_cli.installation.libraries import library_folder
from partage_cli.installation.places import CURRENT, TREES, UNITS
from partage_cli.installation.programs import SHOWN, run
from partage_cli.installation.tree import OUR_UNITS, check, other_units, place, point, pointed, units_of
from partage_crishim.settings import CrishimSettings

_CHECK_WITHIN_S: Final = 60.0
_SPEAKS_WITHIN_S: Final = 60.0
_ASK_AGAIN_S: Final = 0.2
_DEADLINE_S: Final = 5.0
_SOCKET: Final = ".socket"
_SELINUX: Final = "sys/fs/selinux/enforce"
_RUNTIME_DROPIN: Final = "10-runtime.conf"
_NODE_DROPIN: Final = "10-node.conf"
_LIBRARY_DROPIN: Final = "10-library.conf"
_UNIT_WRITES_TO: Final = "usr/local/lib"
"""The broker's default, in which it installs the library again for another driver."""
_SERVICE: Final = "/runtime.v1.RuntimeService/"


class Unpacked(msgspec.Struct, frozen=True):
    version: str
    tree: str
    """Its source path at the time; the next run may have the same tree elsewhere."""


class Unpack:
    name: StepName = "unpack"
    facts_type = Unpacked

    def __init__(self, tree: Path) -> None:
        self._tree = tree

    def plan(self, host: Host) -> Plan[Unpacked]:
        version = check(self._tree)
        home = host.path(TREES) / version
        changes = [] if home.is_dir() else [Change("copy", f"{self._tree} to {home}")]
        if pointed(host.root) != version:
            changes.append(Change("point", f"{host.path(CURRENT)} to {version}"))
        return Plan(tuple(changes), Unpacked(version, str(self._tree)))

    def do(self, host: Host, facts: Unpacked) -> None:
        home = place(host.root, self._tree)
        _label(home, host)
        crishim, broker = home / "bin/partage-crishim", home / "bin/partage-broker"
        _require(crishim, "--root", str(host.root), "--check")
        for words in (("--install-library",), ("--check",)):
            try:
                _require(broker, "--root", str(host.root), *words)
            except StepFailed as error:  # crishim refuses containers that nothing limits, and a driver may come later
                host.say(f"{error}; containers that need limits are refused until then")
        point(host.root, facts.version)

    def undo(self, host: Host, facts: Unpacked) -> None:
        """Removes only the link; the tree may be the one that runs."""
        if pointed(host.root) == facts.version:
            host.path(CURRENT).unlink()


def _label(home: Path, host: Host) -> None:
    """Relabels the tree: a copy gets the labels of its folder, with which SELinux starts no service from it."""
    program = shutil.which("restorecon")
    if program is None or not host.path(_SELINUX).exists():
        return
    done = run(program, "-R", str(home), within_s=_CHECK_WITHIN_S)
    if done.returncode:
        raise StepFailed(f"`restorecon -R {home}` failed: {done.stderr.strip()[-SHOWN:]}")


def _require(*argv: str | Path) -> None:
    """Runs a command that must succeed; raises `StepFailed` with its output."""
    done = run(*map(str, argv), within_s=_CHECK_WITHIN_S)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise StepFailed(f"`{' '.join(map(str, argv))}` says: {said[-1][:SHOWN]}")


class Installed(msgspec.Struct, frozen=True):
    files: tuple[str, ...]
    """Below the folder of units."""
    changed: tuple[str, ...]
    """Those of them that differed before."""


class Units:
    name: StepName = "units"
    facts_type = Installed

    def __init__(self, tree: Path, site: Site) -> None:
        self._tree, self._site = tree, site

    def plan(self, host: Host) -> Plan[Installed]:
        texts = texts_of(host.root, self._tree, self._site)
        changed = tuple(other_units(host.root, texts))
        changes = [Change("write", str(host.path(UNITS) / name)) for name in changed]
        changes += [Change("start", name) for name in OUR_UNITS if not host.services.is_active(name)]
        return Plan(tuple(changes), Installed(tuple(texts), changed))

    def do(self, host: Host, facts: Installed) -> None:
        put_units(host, texts_of(host.root, self._tree, self._site))
        host.services.enable(*OUR_UNITS)
        for name in OUR_UNITS:
            if name.endswith(_SOCKET):
                continue  # systemd refuses while its service runs, and its address stays the same
            if host.services.is_active(name) and any(each.startswith(name) for each in facts.changed):
                host.services.restart(name)
        host.services.start(*OUR_UNITS)

    def undo(self, host: Host, facts: Installed) -> None:
        there = [name for name in reversed(OUR_UNITS) if (host.path(UNITS) / name).exists()]
        if there:
            host.services.stop(*there)
            host.services.disable(*there)
        for path in (host.path(UNITS) / name for name in facts.files):
            path.unlink(missing_ok=True)
            if path.parent.name.endswith(".d") and path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        host.services.daemon_reload()


def texts_of(root: Path, tree: Path, site: Site) -> dict[str, str]:
    """The units of a tree, with drop-ins for what differs from their defaults; raises `InstallationError`.

    These are the runtime's socket, the node's name and the library's folder.
    """
    texts = units_of(tree)
    for daemon in ("broker", "crishim"):
        folder = f"partage-{daemon}.service.d"
        if site.runtime != str(CrishimSettings().runtime):
            texts[f"{folder}/{_RUNTIME_DROPIN}"] = _variable(f"PARTAGE_{daemon.upper()}_RUNTIME", site.runtime)
        if site.node != crishim_of(root).node_name:
            texts[f"{folder}/{_NODE_DROPIN}"] = _variable("PARTAGE_NODE_NAME", site.node)
    library = library_folder(root)
    if not library.is_relative_to(root / _UNIT_WRITES_TO):
        texts[f"partage-broker.service.d/{_LIBRARY_DROPIN}"] = f"[Service]\nReadWritePaths=-{library}\n"
    return texts


def _variable(name: str, value: str) -> str:
    return f"[Service]\nEnvironment={name}={value}\n"


def put_units(host: Host, texts: dict[str, str]) -> None:
    """Writes those that differ on the host, then reloads systemd."""
    for name in other_units(host.root, texts):
        path = host.path(UNITS) / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(path, texts[name].encode(), mode=0o644, synced=True)
    host.services.daemon_reload()


def require_crishim(host: Host) -> None:
    """Waits until crishim answers for the runtime and honours allocations; raises `StepFailed`."""
    until = time.monotonic() + _SPEAKS_WITHIN_S
    while (why := _why_silent(host)) is not None:
        if time.monotonic() >= until:
            raise StepFailed(f"{why}; see `journalctl -u partage-crishim`. Kubelet was not touched")
        time.sleep(_ASK_AGAIN_S)


def _why_silent(host: Host) -> str | None:
    """Why crishim is not in force; None if it is."""
    socket = host.path(crishim_of(host.root).listen)
    try:
        asyncio.run(_asked(socket))
    except CriError as error:
        return f"crishim does not answer for the container runtime: {error}"
    return why_not_honoured(host.root)


def why_not_honoured(root: Path) -> str | None:
    """From crishim's own condition; None: it honours allocations."""
    condition = condition_of(root)
    if condition is None:
        return "crishim has not said whether it honours allocations"
    return next((fault.sentence for fault in condition.faults if fault.refuses), None)


async def _asked(socket: Path) -> None:
    """The calls that kubelet makes when it starts."""
    client = UnaryClient(socket)
    try:
        for method in ("Version", "Status"):
            await client.call(_SERVICE + method, b"", deadline_s=_DEADLINE_S)
    finally:
        client.close()
