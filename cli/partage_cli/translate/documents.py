"""Translates one document, and collects sentences about it for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from partage_cli.translate.manifests import (
    Document,
    PodIn,
    Reader,
    asks,
    pods_in,
    translate,
    translate_to_claims,
    translate_to_variables,
)
from partage_cli.translate.oversubscription import scalings_in

_SHAREPOD: Final = "SharePod"


class Why(Protocol):
    """Returns a sentence about keys for cards that no dialect reads; `asks`: the pod requests cards as well."""

    def __call__(self, pod: Document, /, *, asks: bool) -> str | None: ...


class Sentence(NamedTuple):
    """A sentence about a pod of a document, and whether the document was understood."""

    sentence: str
    is_known: bool


class Outcome(NamedTuple):
    """The documents that replace one document."""

    documents: list[Document]
    told: list[Sentence]
    notes: list[str]
    """What was left out."""


def to_native(document: Document, reads: Reader, why: Why, *, scheduler: str) -> Outcome:
    done = Outcome([document], [], [])
    for label, found in _pods(document, done):
        made = translate(found.pod, reads, scheduler=scheduler)
        if made is not None:
            done.notes.extend(made.notes)
            done.told.append(
                Sentence(
                    f"{label}: {', '.join(made.keys)} said in the native dialect; placed by {scheduler}", is_known=True
                )
            )
        elif asks(found.pod, reads):
            done.told.append(Sentence(f"{label}: asks in the native dialect; unchanged", is_known=True))
        else:
            done.told.append(_unknown(label, why(found.pod, asks=False)))
            continue
        done.notes.extend(_left(label, why(found.pod, asks=True)))
    return done


def to_claims(document: Document, reads: Reader, why: Why) -> Outcome:
    done = Outcome([], [], [])
    for label, found in _pods(document, done):
        made = translate_to_claims(found.pod, found.owner, reads)
        if made is None:
            done.told.append(_unknown(label, why(found.pod, asks=False)))
        else:
            done.notes.extend(_left(label, why(found.pod, asks=True)))
            done.documents.extend(made.templates)
            done.notes.extend(made.notes)
            done.told.append(
                Sentence(f"{label}: {', '.join(made.keys)} said as {len(made.templates)} claims", is_known=True)
            )
    done.documents.append(document)
    return done


def to_variables(document: Document, reads: Reader, why: Why) -> Outcome:
    done = Outcome([document], [], [])
    for label, found in _pods(document, done):
        made = translate_to_variables(found.pod, reads)
        if made is None:
            done.told.append(_unknown(label, why(found.pod, asks=False)))
        else:
            done.notes.extend(_left(label, why(found.pod, asks=True)))
            done.told.append(Sentence(f"{label}: {', '.join(made.keys)} said by variables", is_known=True))
    return done


def _pods(document: Document, done: Outcome) -> Iterator[tuple[str, PodIn]]:
    """Pods with their labels for people; a document without pods gets its sentence here."""
    has_any = False
    for label, found in _labelled(document):
        has_any = True
        yield label, found
    if not has_any:
        label = _label(document)
        if scalings := [*scalings_in(document, label)]:
            done.told.extend(Sentence(each, is_known=True) for each in scalings)
        elif document.get("kind") == _SHAREPOD:
            done.told.append(Sentence(f"{label}: partage-sharepods makes its pod; unchanged", is_known=True))
        else:
            done.told.append(Sentence(f"{label}: has no pod; unchanged", is_known=False))


def _labelled(document: Document) -> Iterator[tuple[str, PodIn]]:
    items = document.get("items")
    if document.get("kind") != "List" or not isinstance(items, list):
        yield from ((_label(document), found) for found in pods_in(document))
        return
    for item in items:
        yield from _labelled(item) if isinstance(item, dict) else ()


def _left(label: str, unread: str | None) -> Iterator[str]:
    if unread is not None:
        yield f"{label}: {unread}"


def _unknown(label: str, why: str | None) -> Sentence:
    return Sentence(f"{label}: {why or 'asks for no card in any dialect that is read here'}; unchanged", is_known=False)


def _label(document: Document) -> str:
    meta = document.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return f"{document.get('kind') or 'a document'} {name or 'without a name'}"
