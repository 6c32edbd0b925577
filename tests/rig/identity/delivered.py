"""The manifests that we deliver, as the rig and tests of them read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec

Manifest = dict[str, Any]
FOLDER: Final = Path(__file__).parents[3] / "manifests"
_BETWEEN_DOCUMENTS: Final = re.compile(r"^---$", re.MULTILINE)


def delivered(name: str) -> list[Manifest]:
    """The objects of a file, by its path below `manifests/`, in the order in which it has them."""
    documents = _BETWEEN_DOCUMENTS.split((FOLDER / name).read_text(encoding="utf-8"))
    return [msgspec.yaml.decode(document, type=Manifest) for document in documents]
