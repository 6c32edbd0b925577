"""What an identity proves itself with: a certificate in files, or a token."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Certified:
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Bearer:
    token: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """A user, and with what it proves to be that."""

    user: str
    proof: Certified | Bearer
