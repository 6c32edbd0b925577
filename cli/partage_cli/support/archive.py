"""A bundle: its files, limited in size each and in total, what is missing and why, and the packed tar.gz."""

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
    """Contents of `bundle.json`."""

    version: str
    at: datetime
    files: Mapping[str, int]
    """Names and sizes in bytes."""
    missing: Mapping[str, str]
    """Parts that are missing or incomplete, and why."""


class Bundle:
    def __init__(self) -> None:
        self._files = {"README.txt": _README.encode()}
        self.missing: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def add(self, name: str, content: bytes) -> None:
        """Add a file; records it as missing if it is too large, or if its name is not allowed."""
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
        """The archive, with all files in one folder."""
        sizes = {name: len(content) for name, content in self._files.items()}
        contents = Contents(version=VERSION, at=at, files=sizes, missing=self.missing)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, content in {**self._files, "bundle.json": plain_json(contents)}.items():
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size, member.mtime, member.mode = len(content), int(at.timestamp()), 0o600
                tar.addfile(member, io.BytesIO(content))
        return packed.getvalue()
