"""What an API server holds: objects by path, their versions, and the history that watches go on from. No sockets.

Only what our clients rely on: one version for all, conflicts, merge patches, bindings, equality selectors, compaction.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

Object = dict[str, Any]
COLLECTIONS: Final = frozenset({"nodes", "pods", "leases", "events", "namespaces", "configmaps"})
_EVERYWHERE: Final = re.compile(r"(/apis?/(?:[a-z0-9.]+/)?v1)/([a-z]+)")


class No(Exception):
    """An answer that says no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status, self.reason, self.message = status, reason, message

    def body(self) -> Object:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.status,
        }


@dataclass(frozen=True)
class Change:
    """One line of history."""

    version: int
    kind: str
    path: str
    object: Object


class Objects:
    """All of them. `on_change` hears of every change."""

    def __init__(self, on_change: Callable[[Change], None] = lambda _: None) -> None:
        self.version = 1
        self.oldest = 0
        """Versions before this one are compacted."""
        self._on_change = on_change
        self._held: dict[str, Object] = {}
        self._history: list[Change] = []
        self._numbers = count(1)

    def get(self, path: str) -> Object:
        if path not in self._held:
            raise No(404, "NotFound", f"{path} not found")
        return self._held[path]

    def select(self, path: str, query: dict[str, str]) -> list[Object]:
        matches = matching(path, query)
        return [held for at, held in sorted(self._held.items()) if matches(at, held)]

    def since(self, version: int) -> Iterator[Change]:
        if version < self.oldest:
            raise No(410, "Expired", f"too old resource version: {version} ({self.oldest})")
        return iter([change for change in self._history if change.version > version])

    def compact(self) -> None:
        """Forgets history, as etcd does after five minutes."""
        self.version += 1
        self.oldest = self.version
        self._history.clear()

    def create(self, path: str, body: Object) -> Object:
        if path.endswith("/binding"):
            return self._bind(path.removesuffix("/binding"), body)
        body = copy.deepcopy(body)
        meta = body.setdefault("metadata", {})
        if not meta.get("name"):
            meta["name"] = f"{meta.get('generateName', '')}{next(self._numbers):05}"
        at = f"{path}/{meta['name']}"
        if at in self._held:
            raise No(409, "AlreadyExists", f"{at} already exists")
        meta.setdefault("uid", f"uid-{next(self._numbers)}")
        return self._store("ADDED", at, body)

    def replace(self, path: str, body: Object) -> Object:
        held, body = self.get(path), copy.deepcopy(body)
        version = body["metadata"].get("resourceVersion", "")
        if not version and "/leases/" in path:
            raise No(422, "Invalid", f"{path} is invalid: metadata.resourceVersion: must be specified for an update")
        if version not in {"", held["metadata"]["resourceVersion"]}:
            raise No(409, "Conflict", f"{path}: the object has been modified; please apply your changes to the latest")
        body["metadata"]["uid"] = held["metadata"]["uid"]
        return self._store("MODIFIED", path, body)

    def patch(self, path: str, body: Object) -> Object:
        path = path.removesuffix("/status")
        return self._store("MODIFIED", path, merged(self.get(path), body))

    def delete(self, path: str) -> Object:
        self._store("DELETED", path, copy.deepcopy(self.get(path)))
        del self._held[path]
        return {"kind": "Status", "status": "Success"}

    def _bind(self, path: str, body: Object) -> Object:
        pod = copy.deepcopy(self.get(path))
        if pod.setdefault("spec", {}).get("nodeName"):
            raise No(409, "Conflict", f"pod is already assigned to node {pod['spec']['nodeName']}")
        pod["spec"]["nodeName"] = body["target"]["name"]
        annotations = body.get("metadata", {}).get("annotations", {})
        self._store("MODIFIED", path, merged(pod, {"metadata": {"annotations": annotations}}))
        return {"kind": "Status", "status": "Success", "code": 201}

    def _store(self, kind: str, path: str, object_: Object) -> Object:
        if kind == "MODIFIED" and _same(object_, self._held[path]):
            return self._held[path]  # nothing is written and nobody is told, as with the real one
        self.version += 1
        object_["metadata"]["resourceVersion"] = str(self.version)
        self._held[path] = object_
        change = Change(self.version, kind, path, copy.deepcopy(object_))
        self._history.append(change)
        self._on_change(change)
        return object_


def matching(path: str, query: dict[str, str]) -> Callable[[str, Object], bool]:
    """Whether an object at a path belongs to a collection and its selectors."""
    everywhere = _EVERYWHERE.fullmatch(path)
    where = re.escape(path) if everywhere is None else f"{everywhere[1]}(/namespaces/[^/]+)?/{everywhere[2]}"
    inside = re.compile(rf"{where}/[^/]+")
    fields = [term.split("=") for term in query.get("fieldSelector", "").split(",") if term]
    labels = [term.split("=") for term in query.get("labelSelector", "").split(",") if term]

    def matches(at: str, object_: Object) -> bool:
        has_labels = object_["metadata"].get("labels", {})
        return (
            inside.fullmatch(at) is not None
            and all(str(_field(object_, name)) == value for name, value in fields)
            and all(has_labels.get(name) == value for name, value in labels)
        )

    return matches


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result: Object = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _same(one: Object, other: Object) -> bool:
    def plain(object_: Object) -> Any:
        return merged(object_, {"metadata": {"resourceVersion": None}})

    return bool(plain(one) == plain(other))


def _field(object_: Object, name: str) -> Any:
    found: Any = object_
    for part in name.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return found
