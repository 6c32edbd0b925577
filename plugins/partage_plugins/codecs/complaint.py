"""Converts a decoder's error into path, value and allowed values; runs only when something is refused.

msgspec reports the place as `$.containers[...].gpu[0].share`: keys of mappings are hidden behind `[...]`. They are
found by bisecting the mapping for as long as the same error comes back, so the cost stays near linear for hostile
input. Numbers are kept as they were written: they may be too large to be numbers here, and `1.0` is not `1`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec
from msgspec import inspect

from partage_plugins.api.gpu import GPU_IN_WORDS
from partage_plugins.api.names import IN_WORDS
from partage_plugins.errors import DecodeError

_PLACE: Final = re.compile(r"^(?P<complaint>.*?)( - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?\Z", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>[0-9]{1,9})\]|(?P<hidden>\[\.\.\.\])")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_WORDS: Final = IN_WORDS | GPU_IN_WORDS
_LONGEST_KEY: Final = 63
_UNKNOWN: Final = object()

Step = str | int


def explained(error: Exception, what: str, data: bytes, type_: Any, at: str) -> DecodeError:
    """The `DecodeError` for a text that could not be decoded as `type_`; all decoders use it."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # an error about a value may hide that the text is no JSON
    except (msgspec.MsgspecError, ValueError, RecursionError) as malformed:
        return DecodeError(what, path=at, value=_beginning(data), allowed=f"JSON ({malformed})")
    place = _PLACE.match(str(error))
    if place is None or not isinstance(error, msgspec.ValidationError):
        return DecodeError(what, path=at, value=_beginning(data), allowed=str(error))
    document = json.loads(data, parse_int=msgspec.Raw, parse_float=msgspec.Raw)
    if not _complains(document, type_, str(error)):
        allowed = "one value for each key; " + _expected(place["complaint"])
        return DecodeError(what, path=at + (place["path"] or ""), value="written more than once", allowed=allowed)
    hidden = "[...]" if place["key"] else ""
    steps = _found((place["path"] or "") + hidden, document, type_, str(error))
    path = at + "".join(map(_step, steps))
    if place["key"] and steps:
        allowed = _allowed_key(inspect.type_info(type_), steps[:-1]) or _expected(place["complaint"])
        return DecodeError(what, path=path, value=f"named {steps[-1]!r}", allowed=allowed)
    allowed = _allowed(inspect.type_info(type_), steps) or _expected(place["complaint"])
    return DecodeError(what, path=path, value=_shown(_at(document, steps)), allowed=allowed)


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step if len(step) <= _LONGEST_KEY else step[:_LONGEST_KEY] + '…', ensure_ascii=False)}]"


def _found(path: str, document: Any, type_: Any, complaint: str) -> list[Step]:
    """The steps of a path, with hidden keys resolved."""
    steps: list[Step] = []
    for match in _STEP.finditer(path):
        if match["hidden"]:
            here = _at(document, steps)
            if not isinstance(here, dict) or not here:
                break
            key = _guilty_key(document, steps, type_, complaint)
            _replace(document, steps, {key: here[key]})
            steps.append(key)
        else:
            steps.append(int(match["index"]) if match["index"] else match["field"])
    return steps


def _guilty_key(document: Any, steps: list[Step], type_: Any, complaint: str) -> str:
    """The key of the mapping at `steps` whose value causes this error."""
    whole: dict[str, Any] = dict(_at(document, steps))
    keys = list(whole)
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        _replace(document, steps, {key: whole[key] for key in half})
        keys = half if _complains(document, type_, complaint) else keys[len(keys) // 2 :]
    _replace(document, steps, whole)
    return str(keys[0])


def _complains(document: Any, type_: Any, complaint: str) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(document), type=type_)
    except Exception as error:  # noqa: BLE001  a kind's own type may raise anything while it is made
        return str(error) == complaint
    return False


def _replace(document: Any, steps: list[Step], value: Any) -> None:
    if steps:
        _at(document, steps[:-1])[steps[-1]] = value
    else:  # the document itself is the mapping
        document.clear()
        document.update(value)


def _at(document: Any, steps: list[Step]) -> Any:
    for step in steps:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return _UNKNOWN
    return document


def _allowed(info: inspect.Type, steps: list[Step]) -> str:
    """Describes what the type allows at these steps; empty if that adds nothing to the original error."""
    for step in steps:
        info = _below(info, step)
    return _in_words(info)


def _allowed_key(info: inspect.Type, steps: list[Step]) -> str:
    for step in steps:
        info = _below(info, step)
    return _in_words(info.key_type) if isinstance(info, inspect.DictType) else ""


def _below(info: inspect.Type, step: Step) -> inspect.Type:
    for choice in info.types if isinstance(info, inspect.UnionType) else (info,):
        if isinstance(choice, inspect.Metadata):
            return _below(choice.type, step)
        if isinstance(choice, inspect.StructType):
            found = [field.type for field in choice.fields if field.encode_name == step]
            if found:
                return found[0]
        elif isinstance(choice, inspect.DictType):
            return choice.value_type
        elif isinstance(choice, inspect.VarTupleType | inspect.ListType):
            return choice.item_type
    return inspect.AnyType()


def _in_words(info: inspect.Type) -> str:
    words = ""
    match info:
        case inspect.Metadata(type=described):
            words = _in_words(described)
        case inspect.UnionType(types=types):
            choices = [_in_words(choice) for choice in types]
            words = " or ".join(choices) if all(choices) else ""
        case inspect.NoneType():
            words = "null"
        case inspect.BoolType():
            words = "true or false"
        case inspect.IntType(ge=low, le=high) if low is not None and high is not None:
            words = f"an integer from {low} to {high}"
        case inspect.LiteralType(values=values):
            words = " or ".join(map(str, values))
        case inspect.StrType(pattern=str(pattern)):
            words = _WORDS.get(pattern, f"text matching {pattern}")
        case _:
            pass
    return words


def _expected(complaint: str) -> str:
    missing = complaint.removeprefix("Object missing required field ")
    if missing != complaint:
        return f"an object with the field {missing}"
    return complaint.removeprefix("Expected ").replace("`", "")


def _shown(value: Any) -> str:
    if value is _UNKNOWN:
        return "missing"
    return msgspec.json.encode(value).decode()


def _beginning(data: bytes) -> str:
    return repr(data[:60].decode(errors="replace")) if data else "empty"
