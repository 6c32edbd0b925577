"""Where our runtime is registered on this machine: Docker's `daemon.json` and a drop-in of Podman's.

What undoes it is written down before anything is changed, so a command that is killed leaves what the next one finishes
or takes back.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_cli.docker import daemon_json, podman_conf
from partage_cli.docker.daemon_json import Before, Registration
from partage_plugins.errors import Refused

DAEMON_JSON: Final = "etc/docker/daemon.json"
DROP_IN: Final = "etc/containers/containers.conf.d/50-partage.conf"
_RECORD: Final = "var/lib/partage/engines/docker.json"
_FOLDER_MODE: Final = 0o755
_FILE_MODE: Final = 0o644


class DockerFile:
    """Docker's settings. All that writes may raise `OSError`, and all may raise `Refused`."""

    def __init__(self, root: Path, path: Path | None = None) -> None:
        self.path = path or root / DAEMON_JSON
        self._record = root / _RECORD

    @property
    def is_registered(self) -> bool:
        return self._before() is not None

    def register(self, wanted: Registration) -> bool:
        """Whether the file had to be changed."""
        now = self._content()
        try:
            written, before = daemon_json.registered(now, wanted, self._before())
        except Refused as error:
            raise Refused(f"{self.path}: {error}; nothing was changed") from None
        self._keep(before)
        if written == now:
            return False
        self._write(written)
        return True

    def have_it_forgotten(self) -> bool:
        """Whether there is something to undo: a running dockerd must then read the file again, before `unregister`."""
        before = self._before()
        if before is None:
            return False
        with self._by_hand():
            written, before = daemon_json.forgetting(self._content(), before)
        self._keep(before)
        self._write(written)
        return True

    def unregister(self) -> bool:
        """Whether there was something to undo."""
        before = self._before()
        if before is None:
            return False
        now = self._content()
        with self._by_hand():
            content = daemon_json.unregistered(now, before)
        if content is None:
            self.path.unlink(missing_ok=True)
        elif content != now:
            self._write(content)
        self._record.unlink()
        return True

    @contextmanager
    def _by_hand(self) -> Generator[None]:
        try:
            yield
        except Refused as error:
            raise Refused(f"{self.path}: {error}; take our runtime out of it by hand") from None

    def _keep(self, before: Before) -> None:
        self._record.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        write_whole(self._record, msgspec.json.encode(before), synced=True)

    def _content(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                return file.read(daemon_json.MOST_BYTES + 1)
        except FileNotFoundError:
            return None

    def _write(self, content: bytes) -> None:
        """A link stays one: what it names is changed. Mode and owner stay."""
        path = self.path.resolve()
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else _FILE_MODE
        write_whole(path, content, mode=mode, synced=True)

    def _before(self) -> Before | None:
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=Before)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise Refused(
                f"{self._record}: what undoes the registration can't be read ({error}); take {daemon_json.RUNTIME} out "
                f"of {self.path} by hand, then remove {self._record}"
            ) from None


class PodmanFile:
    """Podman's drop-in. All that writes may raise `OSError`."""

    def __init__(self, root: Path, path: Path | None = None) -> None:
        self.path = path or root / DROP_IN

    @property
    def is_registered(self) -> bool:
        content = self._content()
        return content is not None and podman_conf.is_ours(content)

    @property
    def is_default(self) -> bool:
        content = self._content()
        return content is not None and podman_conf.is_default(content)

    def register(self, program: str, *, is_default: bool) -> bool:
        """Whether it had to be changed."""
        content, now = podman_conf.drop_in(program, is_default=is_default), self._content()
        if content == now:
            return False
        if now is not None and not podman_conf.is_ours(now):
            raise Refused(f"{self.path} is there, and not of this command; move it away first")
        self.path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        write_whole(self.path, content, mode=_FILE_MODE, synced=True)
        return True

    def unregister(self) -> bool:
        """Whether there was something to undo."""
        if not self.is_registered:
            return False
        self.path.unlink()
        return True

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
