"""What stands in a grant's CDI file: cards, library and socket in one device, and the hook that tells of a container.

One device holds all, so that nobody can leave out the part that limits. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from partage_dra.spec_file import VERSION, spec_of
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.claims import ClaimUid
from partage_plugins.vocabulary.containers import Adjustment
from partage_plugins.vocabulary.names import CardId

_EDITS: Final = "containerEdits"
Document = Mapping[str, Any]


def document_of(
    claim: ClaimUid, limits: Adjustment, cards: Sequence[CardId], published: Document, hook: Document
) -> Any:  # noqa: ANN401  a file's content
    """`published` is the node's document of cards, of which the device has these; limits come after, and so on top."""
    document = spec_of(claim, limits)
    (device,) = document["devices"]
    named = {each["name"]: each[_EDITS] for each in published["devices"]}
    if lacking := [card for card in cards if card not in named]:
        raise Refused(f"the node's CDI file of cards lacks {lacking[0]}; is partage-inventory right about this card?")
    every = (published.get(_EDITS, {}), *(named[card] for card in cards), device[_EDITS], {"hooks": [hook]})
    device[_EDITS] = merged(every)
    document["cdiVersion"] = max(VERSION, published["cdiVersion"], key=_number)
    return document


def merged(every: Iterable[Document]) -> dict[str, Any]:
    """Lists one after the other; of what is no list, the last."""
    found = dict[str, Any]()
    for edits in every:
        for name, value in edits.items():
            found[name] = [*found.get(name, ()), *value] if isinstance(value, list) else value
    return found


def hook_of(python: str, module: str, *words: str, within_s: int) -> Document:
    """Before a container's program begins, with its control group there; an engine ends one that takes longer."""
    args = [python, "-P", "-m", module, *words]
    return {"hookName": "createRuntime", "path": python, "args": args, "timeout": within_s}


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
