"""Semantics of a fake API server: objects, errors, merge patches and selectors. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, Final

Object = dict[str, Any]
_EVERYWHERE: Final = re.compile(r"(/apis?/(?:[a-z0-9.]+/)?v1)/([a-z]+)")


class No(Exception):
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


def matching(path: str, query: dict[str, str]) -> Callable[[str, Object], bool]:
    """A predicate for objects of a collection that match its selectors."""
    everywhere = _EVERYWHERE.fullmatch(path)
    where = re.escape(path) if everywhere is None else f"{everywhere[1]}(/namespaces/[^/]+)?/{everywhere[2]}"
    inside = re.compile(rf"{where}/[^/]+")
    fields = [_term(term) for term in query.get("fieldSelector", "").split(",") if term]
    labels = [term.partition("=") for term in query.get("labelSelector", "").split(",") if term]

    def matches(at: str, object_: Object) -> bool:
        has_labels = object_["metadata"].get("labels", {})
        return (
            inside.fullmatch(at) is not None
            and all((str(_field(object_, name)) == value) is wanted for name, value, wanted in fields)
            and all(name in has_labels and (not sign or has_labels[name] == value) for name, sign, value in labels)
        )

    return matches


def merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result: Object = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def same(one: Object, other: Object) -> bool:
    def plain(object_: Object) -> Any:
        return merged(object_, {"metadata": {"resourceVersion": None}})

    return bool(plain(one) == plain(other))


def _term(term: str) -> tuple[str, str, bool]:
    name, _, value = term.partition("!=" if "!=" in term else "=")
    return name, value, "!=" not in term


def _field(object_: Object, name: str) -> Any:
    found: Any = object_
    for part in name.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return found
