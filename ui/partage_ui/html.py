"""Markup that is safe for any content: text becomes markup only by escaping, or by `tag`. Pure."""

from __future__ import annotations

import html
from typing import Final

from partage_cli.tables import printable

Attribute = str | int | float | bool | None
_VOID: Final = frozenset(("br", "input", "link", "meta"))


class Html(str):
    """Markup. The results of its `str` methods are plain text again."""

    __slots__ = ()


def text(content: str) -> Html:
    """Escapes untrusted text: one line without markup, which can't change the direction of text around it."""
    return Html(html.escape(printable(content)))


def tag(name: str, /, *children: str | None, **attributes: Attribute) -> Html:
    """An element; `class_` and `aria_label` become `class` and `aria-label`. None is omitted."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Html:
    return Html("".join(each if isinstance(each, Html) else text(each) for each in children if each is not None))


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
