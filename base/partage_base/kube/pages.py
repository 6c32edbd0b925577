"""Pages of lists: their content, and how many objects to request at once. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from partage_base.kube.answers import decoded
from partage_base.kube.errors import MalformedResponse
from partage_base.kube.undecodable import Undecodable, undecodable

T = TypeVar("T")
_ALL: Final = 1024
"""Assumed page size after an unlimited request was too large."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: tuple[T, ...]
    undecodable: tuple[Undecodable, ...]
    version: str
    onward: str
    """The `continue` token of the next page; empty on the last one."""


class _PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T], frozen=True):
    metadata: _PageMeta = _PageMeta()
    items: tuple[T, ...] | None = ()
    """Some servers write null for an empty list."""


class Batch:
    """The page size, adapted so that a response stays within its bound."""

    def __init__(self, wanted: int, *, most_bytes: int) -> None:
        """`wanted` 0 means without a limit."""
        self.count = wanted
        self._wanted, self._half = wanted or _ALL, most_bytes // 2
        self._is_cut = False

    def halve(self) -> bool:
        """Halves the size after a page was too large; returns False if it was a single object."""
        is_one = self.count == 1
        self.count = max(1, (self.count or 2 * _ALL) // 2)
        self._is_cut = True
        return not is_one

    def came(self, count: int, size: int) -> None:
        """Adapts the size to a page of `count` objects and `size` bytes: the next ones may be as large."""
        if self._is_cut:
            self.count = min(self._wanted, max(1, count * self._half // max(size, 1)))


def page_of(call: str, body: bytes, item_type: type[T]) -> Page[T]:
    """Decodes one page of a list; raises `MalformedResponse`."""
    try:
        page = cast("_Page[T]", decoded(call, body, _page_type(cast("Any", item_type))))
    except MalformedResponse:
        return _one_by_one(call, body, item_type)
    return Page(page.items or (), (), page.metadata.resource_version, page.metadata.continue_)


def _one_by_one(call: str, body: bytes, item_type: type[T]) -> Page[T]:
    """Decodes item by item and reports those that can't be decoded as `Undecodable`."""
    page = decoded(call, body, _Page[msgspec.Raw])
    items: list[T] = []
    left_out: list[Undecodable] = []
    for raw in page.items or ():
        try:
            items.append(decoded(call, raw, item_type))
        except MalformedResponse as error:
            left_out.append(undecodable(call, raw, error.why))
    return Page(tuple(items), tuple(left_out), page.metadata.resource_version, page.metadata.continue_)


@lru_cache(maxsize=256)
def _page_type(item_type: Any) -> Any:  # noqa: ANN401
    return _Page[item_type]
