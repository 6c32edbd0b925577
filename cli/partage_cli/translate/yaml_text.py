"""Reads untrusted YAML into plain values: bounded before it is built, as strict as the API server's reader. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own

from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, MAX_DEPTH
from partage_plugins.errors import DecodeError

_MOST_EVENTS: Final = 1 << 16
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # as above
    """Reads dates as text, as in JSON, and rejects duplicate keys."""

    yaml_implicit_resolvers: Final = {
        first: [(tag, pattern) for tag, pattern in found if tag != _TIMESTAMP]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_mappings(raw: bytes, what: str, *, most: int) -> list[dict[str, Any]]:
    """The documents that are mappings, without empty ones; raises `DecodeError` about a document called `what`."""
    if len(raw) > MAX_ANNOTATION_BYTES:
        raise DecodeError(what, path="$", value="too long", allowed=f"at most {MAX_ANNOTATION_BYTES} bytes")
    try:
        text = raw.decode()
        _require_small(yaml.parse(text, Loader=_Loader), most)
        found = [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    except UnicodeDecodeError:
        raise DecodeError(what, path="$", value="text that is not Unicode", allowed="UTF-8") from None
    except _Refused as refused:
        raise DecodeError(what, path="$", value=refused.value, allowed=refused.allowed) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(what, path="$", value="no YAML", allowed=" ".join(str(error).split())) from None
    for each in found:
        if not isinstance(each, dict):
            allowed = "fields: apiVersion, kind, …"
            raise DecodeError(what, path="$", value=f"a {type(each).__name__}", allowed=allowed)
    return found


class _Refused(Exception):
    """Valid YAML that we reject."""

    def __init__(self, value: str, allowed: str) -> None:
        super().__init__(value, allowed)
        self.value, self.allowed = value, allowed


def _require_small(events: Iterator[Any], most: int) -> None:
    """Reject large or deep documents, and aliases, by which little text expands to much."""
    depth = documents = 0
    for number, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(f"an alias, *{event.anchor}", "each value where it belongs")
        if documents > most:
            raise _Refused("several documents", "one; the others on their own" if most == 1 else f"at most {most}")
        if depth > MAX_DEPTH or number > _MOST_EVENTS:
            raise _Refused("nested too deep, or too much", f"a depth of {MAX_DEPTH} and {_MOST_EVENTS} values")


def _mapping(loader: Any, node: Any) -> dict[str, Any]:  # noqa: ANN401  (untyped, as above)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _Refused(f"a key {key!r}", "keys that are text: put it in quotes")
        if key in found:
            raise _Refused(f"{key!r} twice in one place", "each key once")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
