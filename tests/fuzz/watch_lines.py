"""Any bytes, split in any way, are events, objects skipped by name, or one expected error; little is buffered."""

from __future__ import annotations

import json
from typing import Final

from fuzz import _codecs
from partage_base.kube import KubeError, Node, Undecodable
from partage_base.kube.errors import HEAD_BYTES
from partage_base.kube.events import Lines, event_of
from partage_base.kube.pages import page_of
from partage_base.kube.undecodable import skipped

_LONGEST: Final = 300
_META: Final = {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "7", "annotations": {"a": "b" * 300}}
_POD: Final = {"kind": "Pod", "apiVersion": "v1", "metadata": _META, "spec": {"nodeName": "n1"}}
_PAGE: Final = {
    "kind": "PodList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "9", "continue": "x"},
    "items": [_POD],
}


def _go(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


SEEDS: Final = (
    b"\x40" + b"".join(_go({"type": kind, "object": _POD}) + b"\n" for kind in ("ADDED", "MODIFIED", "DELETED")),
    b"\x40" + _go({"type": "ERROR", "object": {"code": 410}}) + b"\n",
    b"\x00" + _go(_PAGE),
)
DICTIONARY: Final = (*_codecs.JSON_WORDS, b"ADDED", b"DELETED", b"metadata", b"resourceVersion", b"nodeName", b"\n")


def target(data: bytes) -> str:
    """The first byte says how the rest is split."""
    step, rest = max(1, data[0]) if data else 1, data[1:]
    try:
        events = _events(rest, step)
    except KubeError as error:
        return _named(error)
    return f"{len(events)} events, {sum(isinstance(each, Undecodable) for each in events)} passed over, {_page(rest)}"


def _events(data: bytes, step: int) -> list[object]:
    lines = Lines("WATCH /x", longest=_LONGEST, most_skipped=4096)
    found: list[object] = []
    for begin in range(0, len(data), step):
        found += [event_of("WATCH /x", line, Node) for line in lines.take(data[begin : begin + step])]
    return found


def _page(data: bytes) -> str:
    named = skipped(data[:HEAD_BYTES], "too large")
    try:
        page_of("GET /x", data, Node)
    except KubeError as error:
        return _named(error)
    return "a page" if named is None else "a page with a name"


def _named(error: KubeError) -> str:
    if not str(error).isprintable():
        raise AssertionError("an error that can't be shown")
    return type(error).__name__
