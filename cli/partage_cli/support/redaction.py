"""Redacts text for a bundle: keeps our own words and removes the values that they quote. Pure.

What is gathered is chosen by name, so there is no search for secrets. This is the second line of defence: for messages
that quote users' input, and for anything that looks like a credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

REMOVED: Final = "(removed)"
_LONGEST: Final = 16 << 10
_PEM: Final = re.compile(r"-----BEGIN .*?(?:-----END [^-\n]*-----|\Z)", re.DOTALL)
_USER_INFO: Final = re.compile(r"(?<=://)[^/\s@]+@")
_NAMED: Final = re.compile(
    r"(?i)\b(authorization|bearer|basic|passw(?:or)?d|passphrase|secret|token|credentials?|api[-_]?key|private[-_]?key)"
    r"((?:\"|')?\s*[=:]\s*|\s+(?=\S*\d))(?:(?:bearer|basic)\s+)?(?:\"[^\"]*\"?|'[^']*'?|[^\s,;]+)"
)
_JWT: Final = re.compile(r"\beyJ[\w-]+(?:\.[\w-]*)*")
_QUOTED: Final = re.compile(
    r"""(?<![A-Za-z0-9])(['"])(?:\\.|(?!\1)[^\\]|\1(?=[A-Za-z0-9]))*(?:\1(?![A-Za-z0-9])|\\?\Z)""", re.DOTALL
)
"""Also matches a quotation that is cut off; an apostrophe inside a word neither begins nor ends one."""
_LONG: Final = re.compile(r"(?<![A-Za-z0-9+_=])[A-Za-z0-9+_=]{20,}(?![A-Za-z0-9+_=])")
_ID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}|[a-z_=]+|[A-Za-z]+")
"""A container's key, a digest, a word: nothing that grants access."""


def plain(text: str) -> str:
    """A sentence without its quotations, and without anything that looks like a credential."""
    return _QUOTED.sub("'…'", without_credentials(text))


def without_credentials(text: str) -> str:
    """The text, cut off at some kilobytes, without credentials; ids of cards, pods, containers and keys stay."""
    text = _PEM.sub(REMOVED, text[:_LONGEST])
    text = _USER_INFO.sub(f"{REMOVED}@", text)
    text = _NAMED.sub(rf"\1\2{REMOVED}", text)
    text = _JWT.sub(REMOVED, text)
    return _LONG.sub(lambda found: found[0] if _ID.fullmatch(found[0]) else REMOVED, text)


def plain_json(found: object) -> bytes:
    """Any of our types as JSON, with each text redacted by `plain`."""
    return msgspec.json.format(msgspec.json.encode(_plain(msgspec.to_builtins(found))), indent=1) + b"\n"


def _plain(value: Any) -> Any:  # noqa: ANN401  (JSON of whatever shape)
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {without_credentials(str(key)): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
