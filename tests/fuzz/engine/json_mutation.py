"""Changes one node of a JSON text, so that the text still parses and passes the first check."""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

from fuzz.engine.nasty import JSON_VALUES

_MAX_DEPTH: Final = 50

Place = tuple[dict[str, Any] | list[Any], Any]
"""A container and the key or index of one of its nodes."""


def change_json(data: bytes, rng: random.Random) -> bytes:
    """The same text with one node changed; text that is not JSON, or too deep to walk, is unchanged."""
    try:
        document = {"": json.loads(data)}
    except (ValueError, RecursionError):
        return data
    places = list(places_in(document))
    container, key = rng.choice(places)
    rng.choice((_replace, _replace, _move, _remove, _rename, _copy))(container, key, rng.choice(places), rng)
    return _dump(document.get(""), rng)


def places_in(container: dict[str, Any] | list[Any], depth: int = 0) -> Iterator[Place]:
    nodes = container.items() if isinstance(container, dict) else enumerate(container)
    for key, inner in nodes:
        yield container, key
        if isinstance(inner, (dict, list)) and depth < _MAX_DEPTH:
            yield from places_in(inner, depth + 1)


def _dump(document: object, rng: random.Random) -> bytes:
    ascii_only = rng.random() < 0.7
    try:
        return json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # a node was moved into itself
        return b"[" * 100


def _replace(container: Any, key: Any, _other: Place, rng: random.Random) -> None:
    container[key] = rng.choice(JSON_VALUES)


def _move(container: Any, key: Any, other: Place, _rng: random.Random) -> None:
    there, inner = other
    container[key] = there[inner]


def _remove(container: Any, key: Any, _other: Place, _rng: random.Random) -> None:
    del container[key]


def _rename(container: Any, key: Any, other: Place, rng: random.Random) -> None:
    if isinstance(container, dict):
        container[rng.choice((str(other[1]), "", "v", f"{key} ", f"{key}\0"))] = container.pop(key)
    else:
        container.reverse()


def _copy(container: Any, key: Any, _other: Place, rng: random.Random) -> None:
    if isinstance(container, dict):
        container[f"{key}{rng.randrange(10)}"] = container[key]
    else:
        container.extend([container[key]] * rng.choice((1, 10, 1000)))
