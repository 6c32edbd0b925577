"""The registration of our runtime on this machine: in Docker's `daemon.json` and a drop-in of Podman's.

What undoes it is recorded before anything is changed, so a command that is killed leaves a state that the next one
completes or undoes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from partage_base.files import write_whole
from partage_cli.docker import daemon_json, podman_conf
from partage_cli.docker.daemon_json import Before, Registration
from partage_plugins.errors import Refused

DAEMON_JSON: Final = "etc/docker/daemon.json"
DROP_IN: Final = "etc/containers/containers.conf.d/50-partage.conf"
_RECORD: Final = "var/lib/partage/engines/docker.json"
_FOLDER_MODE: Final = 0o755
_FILE_MODE: Final = 0o644


class _Record(Struct, frozen=True, kw_only=True):
    """What is kept on the machine while our runtime is registered."""

    path: str
    """Path of the file with the registration."""
    before: Before
    pid_file: str | None = None
    """Dockerd's, where it was named."""


class DockerFile:
    """Docker's settings. Methods that write may raise `OSError`, and all may raise `Refused`."""

    def __init__(self, root: Path, named: Path | None = None) -> None:
        """`named` is another file than the default; while one is registered, it must be that one."""
        self.root, self._record = root, root / _RECORD
        kept = self._kept()
        self.path = (named or Path(kept.path if kept else root / DAEMON_JSON)).absolute()
        if kept is not None and self.path != Path(kept.path):
            raise Refused(
                f"{daemon_json.RUNTIME} is registered in {kept.path}; to have it in {self.path}, "
                f"first: partage docker uninstall --daemon-json {kept.path}"
            )
        self._before = None if kept is None else kept.before
        self.pid_file = Path(kept.pid_file) if kept is not None and kept.pid_file else None
        """Dockerd's, as it was named for the registration."""

    @property
    def is_registered(self) -> bool:
        return self._before is not None

    def require_fit(self, wanted: Registration) -> None:
        """Raises `Refused` if `register` would."""
        self._registered(wanted)

    def register(self, wanted: Registration, pid_file: Path | None = None) -> None:
        written, before = self._registered(wanted)
        self.pid_file = pid_file
        self._keep(before)
        if written != self._content():
            self._write(written)

    def have_it_forgotten(self) -> None:
        """A running dockerd must then reload the file before `unregister`."""
        if self._before is None:
            return
        with self._by_hand():
            written, before = daemon_json.forgetting(self._content(), self._before)
        self._keep(before)
        self._write(written)

    def unregister(self) -> None:
        """Restores the former file, after a running dockerd has forgotten our runtime."""
        if self._before is None:
            return
        now = self._content()
        with self._by_hand():
            content = daemon_json.unregistered(now, self._before)
        if content is None:
            self.path.unlink(missing_ok=True)
        elif content != now:
            self._write(content)
        self._record.unlink()
        self._before = None

    def _registered(self, wanted: Registration) -> tuple[bytes, Before]:
        try:
            return daemon_json.registered(self._content(), wanted, self._before)
        except Refused as error:
            raise Refused(f"{self.path}: {error}; nothing was changed") from None

    @contextmanager
    def _by_hand(self) -> Generator[None]:
        try:
            yield
        except Refused as error:
            raise Refused(f"{self.path}: {error}; take our runtime out of it by hand") from None

    def _content(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                return file.read(daemon_json.MOST_BYTES + 1)
        except FileNotFoundError:
            return None

    def _write(self, content: bytes) -> None:
        """Follows a symbolic link and changes its target. Mode and owner stay."""
        path = self.path.resolve()
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        before = path.stat() if path.exists() else None
        mode = _FILE_MODE if before is None else stat.S_IMODE(before.st_mode)
        now = write_whole(path, content, mode=mode, synced=True)
        if before is not None and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            os.chown(path, before.st_uid, before.st_gid)

    def _keep(self, before: Before) -> None:
        self._record.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        pid_file = None if self.pid_file is None else str(self.pid_file)
        record = _Record(path=str(self.path), before=before, pid_file=pid_file)
        write_whole(self._record, msgspec.json.encode(record), synced=True)
        self._before = before

    def _kept(self) -> _Record | None:
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=_Record)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise Refused(
                f"{self._record}: what undoes the registration can't be read ({error}); take {daemon_json.RUNTIME} out "
                f"of Docker's settings by hand, then remove {self._record}"
            ) from None


class PodmanFile:
    """Podman's drop-in. Methods that write may raise `OSError`."""

    def __init__(self, root: Path) -> None:
        self.path = root / DROP_IN

    @property
    def is_registered(self) -> bool:
        content = self._content()
        return content is not None and podman_conf.is_ours(content)

    @property
    def is_default(self) -> bool:
        content = self._content()
        return content is not None and podman_conf.is_default(content)

    def require_fit(self) -> None:
        """Raises `Refused` if another file is in its place."""
        now = self._content()
        if now is not None and not podman_conf.is_ours(now):
            raise Refused(f"{self.path} is there, and not of this command; move it away first")

    def register(self, program: str, *, is_default: bool) -> None:
        self.require_fit()
        self.path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        write_whole(self.path, podman_conf.drop_in(program, is_default=is_default), mode=_FILE_MODE, synced=True)

    def unregister(self) -> bool:
        """Removes our drop-in; returns whether there was one."""
        if not self.is_registered:
            return False
        self.path.unlink()
        return True

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
