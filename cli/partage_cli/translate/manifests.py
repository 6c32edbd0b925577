"""Finds pods in Kubernetes documents, reads them as the scheduler does, and rewrites them in the native dialect. Pure.

There is no list of other dialects' keys: a key belongs to one if the pod's request changes without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final, NamedTuple

import msgspec

from partage_cli.translate.claims import claims_of
from partage_cli.translate.claims import left_out as claims_leave_out
from partage_cli.translate.native import Words, left_out, unsaid, words_for
from partage_cli.translate.variables import variables_for
from partage_plugins.api import Gang, Pod, PodRequest
from partage_plugins.api.keys import PREFIX
from partage_plugins.codecs import read_gang
from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.rules.words import Lexicon, resources_of
from partage_scheduler.objects import ApiPod, seen

Document = dict[str, Any]
Reader = Callable[[Pod], PodRequest]
_TEMPLATES: Final = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "PodTemplate")
)
_AMOUNTS: Final = frozenset(("limits", "requests"))
_REMEDY: Final = "leave the pod as it is, in its own dialect"
_NAMED: Final = {"name": "pod", "namespace": "default", "uid": "uid"}


class Meant(NamedTuple):
    """Everything that dialects read of a pod."""

    request: PodRequest
    gang: Gang | None


class Translated(NamedTuple):
    """The keys of another dialect that were removed from a pod, and notes for people on what was lost with them."""

    keys: list[str]
    notes: list[str]


class Claimed(NamedTuple):
    """The claim templates of a pod, the keys that they replace, and notes for people on what was lost."""

    templates: list[Document]
    keys: list[str]
    notes: list[str]


class PodIn(NamedTuple):
    """A pod of a document, or an object's pod template; it may be changed in place."""

    pod: Document
    owner: Document
    """Metadata of the object with the template, or else of the pod."""


def pods_in(document: Document) -> Iterator[PodIn]:
    kind, spec, owner = document.get("kind"), document.get("spec"), document.get("metadata") or {}
    if kind == "Pod":
        yield PodIn(document, owner)
    elif kind == "List":
        for item in document.get("items") or ():
            yield from pods_in(item)
    elif kind == "CronJob" and isinstance(spec, dict):
        yield from pods_in({"kind": "Job", "metadata": owner, "spec": (spec.get("jobTemplate") or {}).get("spec")})
    elif kind in _TEMPLATES:
        template = document.get("template") if kind == "PodTemplate" else (spec or {}).get("template")
        if isinstance(template, dict):
            yield PodIn(template, owner)


def asks(pod: Document, reads: Reader) -> bool:
    """Whether the pod requests devices in any dialect. Raises what dialects raise."""
    return bool(_asked(pod, reads).request.asking)


def unread(pod: Document, lexicon: Lexicon, *, asks: bool) -> str | None:
    """A sentence about keys for cards that no dialect reads, or None. `asks`: the pod requests cards as well."""
    said = seen(_read(pod))
    return lexicon.in_vain(said, asks=asks, absent=resources_of(said))


def translate(pod: Document, reads: Reader, *, scheduler: str) -> Translated | None:
    """Rewrite another dialect's request in the native one; None if there is none. Raises what dialects raise.

    Raises `Refused` if the native dialect can't express something that matters.
    """
    asked = _asked(pod, reads)
    foreign = _keys_that_count(pod, reads, _may_be_foreign)
    if not foreign:
        return None
    _remove(pod, foreign)
    _write(pod, words_for(asked.request, asked.gang))
    pod["spec"]["schedulerName"] = scheduler
    again = _asked(pod, reads)
    lacking = unsaid(asked.request, again.request)
    if lacking is not None or asked.gang != again.gang:
        raise Refused(f"{_named(pod)}: partage.dev/ has no words for {lacking or 'its gang'}; {_REMEDY}")
    return Translated(_names(foreign), [f"{_named(pod)}: {each}" for each in left_out(asked.request)])


def translate_to_claims(pod: Document, owner: Document, reads: Reader) -> Claimed | None:
    """Rewrite a request in any dialect as claims; None if there is none. Raises what dialects raise.

    The claim templates are named after the owner. Raises `Refused` if claims can't express the request.
    """
    asked = _asked(pod, reads)
    if not asked.request.asking:
        return None
    name = owner.get("name")
    if not isinstance(name, str):
        raise Refused(f"{_named(pod)}: its claims' templates are named after it, and it has no name; give it one")
    claims = claims_of(asked.request, asked.gang)
    asking = _keys_that_count(pod, reads, _may_ask)
    _remove(pod, asking)
    if left := _asked(pod, reads).request.asking:
        raise Refused(f"{_named(pod)}: {min(left)} asks for cards in a way that can't be taken out of it; {_REMEDY}")
    spec = pod["spec"]
    spec.pop("schedulerName", None)
    templates = [_template(owner, f"{name}-{claim.name}", claim.spec) for claim in claims]
    spec["resourceClaims"] = [
        *(spec.get("resourceClaims") or ()),
        *({"name": each.name, "resourceClaimTemplateName": f"{name}-{each.name}"} for each in claims),
    ]
    for container in _containers(pod):
        if mine := [{"name": each.name} for each in claims if container["name"] in each.containers]:
            resources = container.setdefault("resources", {})
            resources["claims"] = [*(resources.get("claims") or ()), *mine]
    notes = [f"{_named(pod)}: {each}" for each in claims_leave_out(asked.request)]
    return Claimed(templates, _names(asking), notes)


def translate_to_variables(pod: Document, reads: Reader) -> Translated | None:
    """Rewrite a request in any dialect as variables; None if there is none. Raises what dialects raise.

    Raises `Refused` if there is no variable for it.
    """
    asked = _asked(pod, reads)
    if not asked.request.asking:
        return None
    try:
        variables = variables_for(asked.request, asked.gang)
    except Refused as error:
        raise Refused(f"{_named(pod)}: {error}") from None
    asking = _keys_that_count(pod, reads, _may_ask)
    _remove(pod, asking)
    if left := _asked(pod, reads).request.asking:
        raise Refused(f"{_named(pod)}: {min(left)} asks for cards in a way that can't be taken out of it; {_REMEDY}")
    pod["spec"].pop("schedulerName", None)
    for container in _containers(pod):
        mine = variables.get(container["name"], {})
        kept = [each for each in container.get("env") or () if each.get("name") not in mine]
        if mine:
            container["env"] = [*kept, *({"name": name, "value": text} for name, text in mine.items())]
    return Translated(_names(asking), [])


def _template(owner: Document, name: str, spec: Document) -> Document:
    namespace = owner.get("namespace")
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"spec": spec},
    }


def _asked(pod: Document, reads: Reader) -> Meant:
    api = _read(pod)
    return Meant(reads(seen(api)), read_gang(api.namespace, api.metadata.annotations, api.metadata.labels))


def _read(pod: Document) -> ApiPod:
    meta, spec = pod.get("metadata") or {}, pod.get("spec")
    if not isinstance(meta, dict) or not isinstance(spec, dict):
        raise DecodeError("manifest", path=_named({}), value="no pod", allowed="metadata and spec with fields")
    named = _NAMED | {key: value for key, value in meta.items() if value is not None}
    try:
        return msgspec.convert({"metadata": named, "spec": as_kept(spec)}, ApiPod)
    except msgspec.ValidationError as error:
        raise DecodeError("manifest", path=_named(pod), value="no pod", allowed=str(error)) from None


def as_kept(value: object, *, are_amounts: bool = False) -> object:
    """A value as the API server stores it: without empty fields, and with amounts as text."""
    if isinstance(value, dict):
        kept = {key: as_kept(inner, are_amounts=key in _AMOUNTS) for key, inner in value.items() if inner is not None}
        return {key: str(inner) for key, inner in kept.items()} if are_amounts else kept
    return [as_kept(inner) for inner in value] if isinstance(value, list) else value


_Place = tuple[str | int, ...]


def _places(pod: Document) -> Iterator[_Place]:
    yield from (("metadata", "labels"), ("metadata", "annotations"))
    for field in ("initContainers", "containers"):
        for number, _ in enumerate(pod["spec"].get(field) or ()):
            for amounts in ("limits", "requests"):
                yield ("spec", field, number, "resources", amounts)


def _at(pod: Document, place: _Place) -> Document:
    found: Any = pod
    for step in place:
        found = found[step] if isinstance(step, int) else (found.get(step) or {})
    here: Document = found
    return here


def _keys_that_count(pod: Document, reads: Reader, may: Callable[[_Place, str], bool]) -> list[tuple[_Place, str]]:
    """Keys whose removal changes the request, and keys that alone make a request."""
    others = [(place, key) for place in _places(pod) for key in _at(pod, place) if may(place, key)]
    bare = _without(pod, others)
    outcome, of_bare = _outcome(pod, reads), _outcome(bare, reads)
    return [
        each
        for each in others
        if _outcome(_without(pod, [each]), reads) != outcome
        or _outcome(_without(pod, [other for other in others if other != each]), reads) != of_bare
    ]


def _may_ask(place: _Place, key: str) -> bool:
    """Resource names need a domain: the others are Kubernetes' own. KAI's annotations have no domain."""
    return place[0] == "metadata" or "/" in key


def _may_be_foreign(place: _Place, key: str) -> bool:
    return _may_ask(place, key) and not key.startswith(PREFIX)


def _names(keys: list[tuple[_Place, str]]) -> list[str]:
    """Names without duplicates, in order."""
    return list(dict.fromkeys(key for _, key in keys))


def _remove(pod: Document, keys: list[tuple[_Place, str]]) -> None:
    for place, key in keys:
        del _at(pod, place)[key]


def _without(pod: Document, keys: list[tuple[_Place, str]]) -> Document:
    less = deepcopy(pod)
    _remove(less, keys)
    return less


def _outcome(pod: Document, reads: Reader) -> Meant | str:
    try:
        return _asked(pod, reads)
    except PartageError as error:
        return str(error)


def _write(pod: Document, words: Words) -> None:
    if words.annotations:
        meta = pod.setdefault("metadata", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), **words.annotations}
    for container in _containers(pod):
        for name, limits in words.limits.items():
            if container["name"] == name:
                amounts = container.setdefault("resources", {})
                amounts["limits"] = {**(amounts.get("limits") or {}), **limits}


def _containers(pod: Document) -> Iterator[Document]:
    yield from (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])


def _named(pod: Document) -> str:
    name = (pod.get("metadata") or {}).get("name")
    return f"pod {name}" if isinstance(name, str) else "a template's pod"
