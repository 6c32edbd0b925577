"""Statements about a release: its parts for auditors, what it was made from, and its checksums. Pure.

They contain no time and no serial number, so equal releases have equal statements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_PROVENANCE: Final = "https://slsa.dev/provenance/v1"
_BUILDER: Final = "https://partage.dev/make-release"
_BUILD: Final = f"{_BUILDER}/v1"


@dataclass(frozen=True)
class Content:
    """An item that users take from the folder."""

    kind: Literal["container", "file", "library"]
    name: str
    version: str
    digest: str
    """SHA-256 in hexadecimal."""
    purl: str = ""
    licence: str = ""
    description: str = ""
    parts: Sequence[Mapping[str, Any]] = ()
    """Its parts, as CycloneDX components."""

    def component(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "name": self.name,
            "version": self.version,
            "hashes": [{"alg": "SHA-256", "content": self.digest}],
            **({"description": self.description} if self.description else {}),
            **({"purl": self.purl} if self.purl else {}),
            **({"licenses": [{"license": {"name": self.licence}}]} if self.licence else {}),
            **({"components": list(self.parts)} if self.parts else {}),
        }


def bill(version: str, contents: Iterable[Content]) -> str:
    """The bill of materials, as CycloneDX."""
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "partage", "version": version}},
        "components": [each.component() for each in sorted(contents, key=lambda each: (each.name, each.digest))],
    }
    return json.dumps(document, indent=1) + "\n"


@dataclass(frozen=True)
class Source:
    """What a release was made from: the git commit, and the digests of the locks."""

    commit: str
    is_dirty: bool
    """Whether there were uncommitted changes."""
    locks: Mapping[str, str]
    """The SHA-256 of each, by its path."""

    def materials(self) -> list[dict[str, Any]]:
        changed = {"annotations": {"dirty": True}} if self.is_dirty else {}
        return [
            {"name": "partage", "digest": {"gitCommit": self.commit}, **changed},
            *({"name": path, "digest": {"sha256": digest}} for path, digest in sorted(self.locks.items())),
        ]


def provenance(subjects: Mapping[str, str], source: Source, parameters: Mapping[str, Any]) -> str:
    """An in-toto statement with SLSA provenance. Unsigned, it proves as much as the signature of the checksums."""
    document = {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())],
        "predicateType": _PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD,
                "externalParameters": dict(parameters),
                "resolvedDependencies": source.materials(),
            },
            "runDetails": {"builder": {"id": _BUILDER}},
        },
    }
    return json.dumps(document, indent=1) + "\n"
