"""Objects that can't be decoded: each is skipped and named, so that the others are still read. Pure.

An object may be too large, or not have the form of its kind; one such object must not stop an informer. Its name, node
and annotations can nearly always be read. Of an object that is too large only the beginning is decoded, where an API
server writes names, uid and version, in this order and before anything that users choose freely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from partage_base.kube.answers import decoded
from partage_base.kube.errors import HEAD_BYTES, MalformedResponse

T = TypeVar("T")
_KIND: Final = r'(?:"kind":"\w{1,63}",)?(?:"apiVersion":"[\w./-]{1,253}",)?'
_FIELDS: Final = "".join(
    rf'(?:"{field}":"(?P<{field}>[^"\\]{{0,253}})",?)?'
    for field in ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
)
_OBJECT: Final = rf'\{{{_KIND}"metadata":\{{{_FIELDS}'
_LINE: Final = re.compile(rf'\{{"type":"(?P<type>ADDED|MODIFIED|DELETED)","object":{_OBJECT}'.encode())
_PAGE: Final = re.compile(
    rf'\{{{_KIND}"metadata":\{{"resourceVersion":"(?P<version>\d{{0,20}})"(?:,"continue":"(?P<onward>[^"\\]{{0,2048}})")?'
    rf'(?:,"remainingItemCount":\d{{1,20}})?\}},"items":\[{_OBJECT}'.encode()
)


class Undecodable(msgspec.Struct, frozen=True):
    """An object that exists, or was deleted, and whose content can't be decoded."""

    key: tuple[str, str]
    """Its namespace and name."""
    why: str
    uid: str = ""
    version: str = ""
    node: str = ""
    """The node in its spec; empty also if that can't be decoded."""
    is_gone: bool = False
    annotations: Mapping[str, str] = {}
    """Empty also if they can't be decoded."""


class Skipped(msgspec.Struct, frozen=True):
    """A page of one object that can't be decoded."""

    undecodable: Undecodable
    version: str
    onward: str


class _ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _ObjectMeta


class _Notes(msgspec.Struct, frozen=True):
    annotations: Mapping[str, str] = {}


class _Noted(msgspec.Struct, frozen=True):
    metadata: _Notes = _Notes()


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


def undecodable(call: str, raw: msgspec.Raw, why: str, *, is_gone: bool = False) -> Undecodable:
    """An object that does not have the expected form; raises `MalformedResponse` if it does not even have a name."""
    meta = decoded(call, raw, _Named).metadata
    node = _or(_Placed(), call, raw).spec.node_name
    notes = _or(_Noted(), call, raw).metadata.annotations
    return Undecodable((meta.namespace, meta.name), why, meta.uid, meta.resource_version, node, is_gone, notes)


def undecodable_line(head: bytes, why: str) -> Undecodable | None:
    """Decodes the beginning of a watch line; None if no API server writes such a line."""
    found = _LINE.match(head[:HEAD_BYTES])
    return None if found is None else _by_name(found, why, is_gone=found["type"] == b"DELETED")


def skipped(head: bytes, why: str) -> Skipped | None:
    """Decodes the beginning of a page of one object; None if no API server writes such a page."""
    found = _PAGE.match(head[:HEAD_BYTES])
    if found is None:
        return None
    return Skipped(_by_name(found, why), found["version"].decode(), (found["onward"] or b"").decode(errors="replace"))


def _or(nothing: T, call: str, raw: msgspec.Raw) -> T:
    """As much of the object as its type names, or `nothing`."""
    try:
        return decoded(call, raw, type(nothing))
    except MalformedResponse:
        return nothing


def _by_name(found: re.Match[bytes], why: str, *, is_gone: bool = False) -> Undecodable:
    def said(field: str) -> str:
        return (found[field] or b"").decode(errors="replace")

    key = said("namespace"), said("name")
    return Undecodable(key, why, said("uid"), said("resourceVersion"), is_gone=is_gone)
