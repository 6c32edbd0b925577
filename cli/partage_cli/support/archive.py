"""A bundle: its files, bounded each and together, what it lacks and why, and all of it as a tar.gz."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from partage_base.version import VERSION
from partage_cli.support.redaction import plain, plain_json

MOST_FILE_BYTES: Final = 8 << 20
MOST_BYTES: Final = 64 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}(/[A-Za-z0-9][A-Za-z0-9._-]{0,252}){0,3}")
_README: Final = """\
A support bundle of partage. It has findings, versions, settings, states and logs; never Secrets, tokens, private keys,
environments, or what pods run. bundle.json says what is in it, and what could not be had. Names of nodes, namespaces
and pods are in it: read it before you send it.
"""


class Contents(msgspec.Struct, frozen=True):
    """What `bundle.json` says of the rest."""

    version: str
    at: datetime
    files: Mapping[str, int]
    """With their bytes."""
    missing: Mapping[str, str]
    """What could not be had, or not all of it, and why."""


class Bundle:
    def __init__(self) -> None:
        self._files = {"README.txt": _README.encode()}
        self.missing: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def add(self, name: str, content: bytes) -> None:
        """Leaves it out where it is too much, or has no name that a file of it may have."""
        if not _NAME.fullmatch(name):
            self.lacks("others", f"{name!r} is no name for a file")
        elif len(content) > MOST_FILE_BYTES:
            self.lacks(name, f"it has {len(content)} bytes, and {MOST_FILE_BYTES} are taken of one")
        elif sum(map(len, self._files.values())) + len(content) > MOST_BYTES:
            self.lacks(name, f"the bundle would have more than {MOST_BYTES} bytes")
        else:
            self._files[name] = content

    def lacks(self, name: str, why: str) -> None:
        self.missing[name] = plain(why)

    def packed(self, at: datetime, folder: str) -> bytes:
        """All of it below one folder."""
        sizes = {name: len(content) for name, content in self._files.items()}
        contents = Contents(version=VERSION, at=at, files=sizes, missing=self.missing)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, content in {**self._files, "bundle.json": plain_json(contents)}.items():
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size, member.mtime, member.mode = len(content), int(at.timestamp()), 0o600
                tar.addfile(member, io.BytesIO(content))
        return packed.getvalue()
