"""State of an API server: objects by path, their versions, and the history that watches resume from. No sockets.

It implements only what our clients rely on: one version for all, conflicts, merge patches, bindings, selectors,
compaction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from support.fake_answers import No, Object, matching, merged, same
from support.fake_pods import bound, going, require_uid, with_status

__all__ = ["COLLECTIONS", "Change", "No", "Object", "Objects", "matching", "merged"]

COLLECTIONS: Final = frozenset(
    {
        "nodes",
        "pods",
        "leases",
        "events",
        "namespaces",
        "configmaps",
        "persistentvolumes",
        "persistentvolumeclaims",
        "storageclasses",
        "csinodes",
        "poddisruptionbudgets",
        "resourcequotas",
        "endpointslices",
        "resourceclaims",
        "resourceslices",
        "deviceclasses",
    }
)


@dataclass(frozen=True)
class Change:
    version: int
    kind: str
    path: str
    object: Object
    before: Object | None = None

    def as_seen(self, matches: Callable[[str, Object], bool]) -> tuple[str, Object] | None:
        """The change as a selecting watch reports it: objects that stop matching are DELETED, new matches ADDED."""
        was = self.before is not None and matches(self.path, self.before)
        if not matches(self.path, self.object):
            return ("DELETED", self.object) if was and self.kind == "MODIFIED" else None
        return ("ADDED" if self.kind == "MODIFIED" and not was else self.kind), self.object


class Objects:
    def __init__(self, on_change: Callable[[Change], None] = lambda _: None) -> None:
        self.version = 1
        self.oldest = 0
        """Versions before this one are compacted."""
        self._on_change = on_change
        self._held: dict[str, Object] = {}
        self.history: list[Change] = []
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
        return iter([change for change in self.history if change.version > version])

    def compact(self) -> None:
        self.version += 1
        self.oldest = self.version
        self.history.clear()

    def create(self, path: str, body: Object) -> Object:
        if path.endswith("/binding"):
            return self._bind(path.removesuffix("/binding"), body)
        if path.endswith("/eviction"):
            return self.delete(path.removesuffix("/eviction"), body.get("deleteOptions"))
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

    def patch(self, path: str, body: Object, *, strategic: bool = False) -> Object:
        of_status, path = path.endswith("/status"), path.removesuffix("/status")
        version = body.get("metadata", {}).get("resourceVersion", "")
        if version not in {"", self.get(path)["metadata"]["resourceVersion"]}:
            raise No(409, "Conflict", f"{path}: the object has been modified; please apply your changes to the latest")
        if of_status:
            return self._store("MODIFIED", path, with_status(self.get(path), body, strategic=strategic))
        return self._store("MODIFIED", path, merged(self.get(path), body))

    def delete(self, path: str, options: Object | None = None) -> Object:
        require_uid(self.get(path), options or {})
        self._store("DELETED", path, copy.deepcopy(self.get(path)))
        del self._held[path]
        return {"kind": "Status", "status": "Success"}

    def begin_deletion(self, path: str) -> Object:
        """Set the deletionTimestamp, as for a running pod; the pod stays until it is deleted."""
        return self._store("MODIFIED", path, going(self.get(path)))

    def _bind(self, path: str, binding: Object) -> Object:
        self._store("MODIFIED", path, bound(path, copy.deepcopy(self.get(path)), binding))
        return {"kind": "Status", "status": "Success", "code": 201}

    def _store(self, kind: str, path: str, object_: Object) -> Object:
        if kind == "MODIFIED" and same(object_, self._held[path]):
            return self._held[path]  # as with the real one, nothing is written and no watch notified
        self.version += 1
        object_["metadata"]["resourceVersion"] = str(self.version)
        before = self._held.get(path)
        self._held[path] = object_
        change = Change(self.version, kind, path, copy.deepcopy(object_), copy.deepcopy(before))
        self.history.append(change)
        self._on_change(change)
        return object_
