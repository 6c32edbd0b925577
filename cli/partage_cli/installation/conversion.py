"""The steps that give kubelet another runtime endpoint, with the rollback prepared first.

`save` copies the files that will change. `arm` prepares both directions and starts the timer. `endpoint` changes the
files and restarts kubelet. `confirmation` is the step after these.

The new content of each file is written beside it before the timer starts, and is then renamed to its place. The
rollback removes the staged files first: so a rename that comes too late finds nothing, and an earlier one is undone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from partage_base.files import sync_folder, write_whole
from partage_cli.doctor.endpoint import path_of
from partage_cli.doctor.local_node import LocalNode, Unseen, text_of
from partage_cli.installation import turn, way_back
from partage_cli.installation.canary import static_file
from partage_cli.installation.edits import How, Spot, changed, restored, said, spots
from partage_cli.installation.errors import StepFailed, TurnedBack
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import Site, crishim_of
from partage_cli.installation.journal import Change, Plan, StepName
from partage_cli.installation.kubelet import kubelet_of, next_setup
from partage_cli.installation.places import SAVED, UNITS, WAY_BACK
from partage_plugins.api.places import KUBELET_SPOKE

_BEFORE, _STAGED = ".partage-before", ".partage-staged"


class SavedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that sets kubelet's runtime endpoint, as it was before and as we left it."""

    path: str
    how: How
    saved: str
    """Its copy's name; empty if the file did not exist."""
    endpoint: str | None
    """The endpoint in it before."""
    written: str
    """The SHA-256 of our content."""

    @property
    def spot(self) -> Spot:
        return Spot(self.path, self.how)

    @property
    def is_written(self) -> bool:
        """Whether the file has our content; a copy of it is then not the former one."""
        text = text_of(Path(self.path))
        return not isinstance(text, Unseen) and _digest(text) == self.written

    @property
    def ready(self) -> str:
        """Path of the prepared former content; empty if there was none."""
        return self._beside(_BEFORE) if self.saved else ""

    @property
    def staged(self) -> str:
        """Path of the new content until the switch."""
        return self._beside(_STAGED)

    def _beside(self, end: str) -> str:
        """A path in the same folder; no kubelet reads files of this name."""
        path = Path(self.path)
        return str(path.with_name(f".{path.name}{end}"))


class SavedFiles(msgspec.Struct, frozen=True):
    files: tuple[SavedFile, ...] = ()


class Save:
    name: StepName = "save"
    facts_type = SavedFiles

    def plan(self, host: Host) -> Plan[SavedFiles]:
        files = saved_files(host)
        return Plan(tuple(Change("keep", each.path) for each in files if each.saved), SavedFiles(files))

    def do(self, host: Host, facts: SavedFiles) -> None:
        folder = host.path(SAVED)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in facts.files:
            if each.saved and not each.is_written:
                _copy(Path(each.path), folder / each.saved)

    def undo(self, host: Host, facts: SavedFiles) -> None:
        shutil.rmtree(host.path(SAVED), ignore_errors=True)


def saved_files(host: Host) -> tuple[SavedFile, ...]:
    """The files to change; raises `UnfitNode`."""
    settings = crishim_of(host.root)
    kubelet = kubelet_of(LocalNode(root=host.root, name="", crishim=settings))
    wanted = f"unix://{settings.listen}"
    found: list[SavedFile] = []
    for number, spot in enumerate(spots(kubelet.next, kubelet.files)):
        real = Spot(os.path.realpath(spot.path), spot.how)
        text = text_of(Path(real.path))
        if isinstance(text, Unseen) and not text.is_missing:
            raise StepFailed(str(text))
        before = None if isinstance(text, Unseen) else text
        after = changed(real, before, wanted)
        found.append(
            SavedFile(
                path=real.path,
                how=real.how,
                saved="" if before is None else f"{number}-{Path(real.path).name}",
                endpoint=None if before is None else said(real, before),
                written=_digest(after),
            )
        )
    return tuple(found)


class Armed(msgspec.Struct, frozen=True):
    after_s: float


class Arm:
    name: StepName = "arm"
    facts_type = Armed

    def __init__(self, site: Site, files: Sequence[SavedFile], *, after_s: float) -> None:
        self._site, self._files, self._after_s = site, files, after_s

    def plan(self, host: Host) -> Plan[Armed]:
        changes = (
            Change("write", str(host.path(WAY_BACK))),
            Change("start", f"{way_back.TIMER}: it gives kubelet its runtime back after {self._after_s:g} s"),
        )
        return Plan(changes, Armed(self._after_s))

    def do(self, host: Host, facts: Armed) -> None:
        """Everything both directions need is on disk before the timer starts, and the timer before anything changes."""
        wanted = _endpoint(host)
        for each in self._files:
            if each.saved:
                _copy(host.path(SAVED) / each.saved, Path(each.ready))
            text = text_of(Path(each.path))
            after = changed(each.spot, None if isinstance(text, Unseen) else text, wanted)
            _write(Path(each.staged), after, like=Path(each.path))
        script = way_back.script(
            [way_back.PutBack(each.path, each.ready, each.staged) for each in self._files],
            canary=static_file(host, self._site),
            kubelet=self._site.kubelet,
            systemctl=host.services.command,
            root=str(host.root),
        )
        write_whole(host.path(WAY_BACK), script.encode(), mode=0o700, synced=True)
        units = way_back.units(kubelet=self._site.kubelet, after_s=facts.after_s, root=str(host.root))
        for name, text in units.items():
            write_whole(host.path(UNITS) / name, text.encode(), mode=0o644, synced=True)
        host.services.daemon_reload()
        host.services.enable(*units)
        until = datetime.now(UTC) + timedelta(seconds=facts.after_s)
        turn.arm(host.root, until.isoformat(timespec="seconds"))
        host.services.restart(way_back.TIMER)

    def undo(self, host: Host, facts: Armed) -> None:
        disarm(host, self._files)
        turn.clear(host.root)


def disarm(host: Host, files: Sequence[SavedFile]) -> None:
    """Removes what was prepared for both directions, as far as it exists."""
    for each in files:
        for laid in filter(None, (each.ready, each.staged)):
            Path(laid).unlink(missing_ok=True)
    host.path(WAY_BACK).unlink(missing_ok=True)
    there = [name for name in (way_back.TIMER, way_back.SERVICE) if (host.path(UNITS) / name).exists()]
    if not there:
        return
    host.services.stop(*there)
    host.services.disable(*there)
    for name in there:
        (host.path(UNITS) / name).unlink()
    host.services.daemon_reload()


class Endpoint:
    """Changes kubelet's files and restarts it; undoing restores their former endpoint."""

    name: StepName = "endpoint"
    facts_type = SavedFiles

    def __init__(self, site: Site, files: tuple[SavedFile, ...]) -> None:
        self._site, self._files = site, files

    def plan(self, host: Host) -> Plan[SavedFiles]:
        changes = [Change("change", f"{each.path}: kubelet's runtime is crishim") for each in self._files]
        changes.append(Change("restart", self._site.kubelet))
        return Plan(tuple(changes), SavedFiles(self._files))

    def do(self, host: Host, facts: SavedFiles) -> None:
        """Raises `TurnedBack` if the time ran out before; then the files are unchanged."""
        for each in facts.files:
            try:
                Path(each.staged).replace(each.path)
            except FileNotFoundError:
                if not each.is_written:
                    raise TurnedBack(f"the time ran out before {each.path} was changed") from None
            sync_folder(Path(each.path).parent)
        self._require_next(host, _endpoint(host))
        host.path(KUBELET_SPOKE).unlink(missing_ok=True)
        host.services.restart(self._site.kubelet)

    def _require_next(self, host: Host, wanted: str) -> None:
        """Verifies that what was written takes effect."""
        setup = next_setup(LocalNode(root=host.root, name=""), self._site.kubelet)
        says = None if setup is None else setup.in_force
        if says is not None and path_of(says.endpoint) != path_of(wanted):
            raise StepFailed(f"{says.where} still gives kubelet {says.endpoint}, and beats what was written")

    def undo(self, host: Host, facts: SavedFiles) -> None:
        """Keeps the changes of a file that others changed since, as kubeadm does."""
        wanted = path_of(_endpoint(host))
        for each in facts.files:
            text = text_of(Path(each.path))
            if each.is_written and not each.saved:
                Path(each.path).unlink()
            elif each.is_written:
                _copy(host.path(SAVED) / each.saved, Path(each.path))
            elif not isinstance(text, Unseen) and path_of(said(each.spot, text) or "") == wanted:
                _write(Path(each.path), restored(each.spot, text, each.endpoint), like=Path(each.path))
        host.services.restart(self._site.kubelet)


def _copy(source: Path, target: Path) -> None:
    """Copies a file with its owner, mode, times and xattrs, atomically."""
    beside = target.with_name(f".{target.name}.copied")
    try:
        shutil.copy2(source, beside)
        status = source.stat()
        os.chown(beside, status.st_uid, status.st_gid)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _endpoint(host: Host) -> str:
    """The endpoint that kubelet is given."""
    return f"unix://{crishim_of(host.root).listen}"


def _write(path: Path, text: str, *, like: Path) -> None:
    """Writes a file with the mode and the owner of the one it replaces, if that exists."""
    try:
        status = like.stat()
    except FileNotFoundError:
        write_whole(path, text.encode(), mode=0o644, synced=True)
        return
    write_whole(path, text.encode(), mode=status.st_mode & 0o7777, synced=True)
    os.chown(path, status.st_uid, status.st_gid)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
