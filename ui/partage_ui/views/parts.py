"""Parts of views: the query, tables that become cards on narrow screens, bars, pages of rows. Pure.

No element has an inline style, which the content security policy forbids; widths are attributes in SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from partage_cli.tables import age, amount
from partage_plugins.api.limits import WHOLE_MILLI
from partage_ui.html import Html, joined, tag
from partage_ui.workload import Workload

T = TypeVar("T")
ROWS: Final = 50
_LONGEST: Final = 253
_MOST_PAGE: Final = 100_000
_WIDTH: Final = 1000
_TICK: Final = 8
_HEIGHT: Final = 20


class Query(Struct, frozen=True, kw_only=True):
    """Which rows are requested."""

    text: str = ""
    namespace: str = ""
    page: int = 1

    def matches(self, *names: str) -> bool:
        return not self.text or any(self.text in name.lower() for name in names)

    def address(self, page: int) -> str:
        said = {"q": self.text, "namespace": self.namespace, "page": str(page) if page > 1 else ""}
        return "?" + urlencode({key: value for key, value in said.items() if value})


def read_query(said: Mapping[str, str]) -> Query:
    """Accepts anything that a browser sends; an invalid page is the first one."""
    number = said.get("page", "")
    page = int(number) if number.isascii() and number.isdigit() and len(number) <= len(str(_MOST_PAGE)) else 1
    return Query(
        text=said.get("q", "").strip().lower()[:_LONGEST],
        namespace=said.get("namespace", "").strip()[:_LONGEST],
        page=max(1, min(page, _MOST_PAGE)),
    )


class Shown(NamedTuple):
    """The content of one view."""

    summary: str
    """One sentence, which screen readers announce when it changes."""
    body: Html


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """The first cell of a row names it. Roles are explicit, since narrow screens lay tables out as blocks."""
    header = tag("tr", *(tag("th", head, scope="col", role="columnheader") for head in heads), role="row")
    body = joined(*(_row(heads, row) for row in rows))
    parts = (tag("caption", caption), tag("thead", header, role="rowgroup"), tag("tbody", body, role="rowgroup"))
    return tag(
        "div", tag("table", *parts, role="table"), class_="scroll", role="region", aria_label=caption, tabindex=0
    )


def _row(heads: Sequence[str], cells: Sequence[str]) -> Html:
    first, *rest = zip(heads, cells, strict=True)
    named = tag("th", first[1], scope="row", role="rowheader")
    return tag("tr", named, *(tag("td", cell, role="cell", data_label=head) for head, cell in rest), role="row")


def paged(rows: Sequence[T], query: Query) -> tuple[Sequence[T], Html]:
    """The rows of the requested page, or of the last one; and links to the others."""
    pages = max(1, -(-len(rows) // ROWS))
    page = min(query.page, pages)
    shown = rows[(page - 1) * ROWS : page * ROWS]
    if pages == 1:
        return shown, Html("")
    links = [
        tag("a", words, href=query.address(to), rel=rel)
        if 1 <= to <= pages
        else tag("span", words, aria_disabled="true")
        for words, to, rel in (("Previous", page - 1, "prev"), ("Next", page + 1, "next"))
    ]
    where = tag("span", f"Page {page} of {pages}, {len(rows)} in all")
    return shown, tag("nav", links[0], where, links[1], class_="pages", aria_label="Pages")


def two(first: str, second: str) -> Html:
    """A cell of two lines."""
    return joined(first, tag("small", second))


def code(words: str) -> Html:
    return tag("code", words)


def badge(words: str, kind: str) -> Html:
    """`kind` is `good`, `warn` or `bad`; the words have the same meaning as the colour."""
    return tag("span", words, class_=f"badge {kind}")


def nothing(words: str) -> Html:
    return tag("p", words, class_="nothing")


def since(moment: datetime | None, now: datetime) -> str:
    """The age, in whole minutes from one minute on: nobody can read a page that changes each second."""
    return "unknown" if moment is None else age((now - moment).total_seconds())


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def milli(part: float) -> int:
    return round(part * WHOLE_MILLI)


def stacked(label: str, *parts: tuple[str, float], marks: Iterable[tuple[str, float]] = ()) -> Html:
    """Bars on top of each other from the left, each a part of the whole, and marks across them."""
    rects = [_rect(kind, 0, _width(part), 0, _HEIGHT) for kind, part in parts]
    ticks = [_rect(kind, min(_WIDTH - _TICK, _width(at)), _TICK, 0, _HEIGHT) for kind, at in marks]
    return _drawing("bar", _WIDTH, label, *rects, *ticks)


def share_bar(each: Workload) -> Html:
    """The card time got and wanted, with marks for the guarantee and the ceiling."""
    time = None if each.held is None else each.held.time
    guarantee, ceiling = each.share_milli / WHOLE_MILLI, each.limit_milli / WHOLE_MILLI
    marks = (("guarantee", guarantee), *((("ceiling", ceiling),) if ceiling < 1 else ()))
    said = f"guaranteed {each.share_milli} milli, ceiling {each.limit_milli} milli"
    if time is None:
        return stacked(f"{said}; not metered", marks=marks)
    got, wanted = time.got.s60, time.wanted.s60
    label = f"got {milli(got)} milli, wanted {milli(wanted)} milli, {said}"
    return stacked(label, ("wanted", wanted), ("short" if each.short_by else "got", got), marks=marks)


def memory_bar(held_bytes: int, limit_bytes: int) -> Html:
    part = held_bytes / limit_bytes if limit_bytes else float(held_bytes > 0)
    full = 0.95
    return stacked(f"holds {amount(held_bytes)} of {amount(limit_bytes)}", ("full" if part >= full else "got", part))


def hour(each: Workload) -> Html:
    """What was wanted and got in each minute of the last hour."""
    if not any(each.hour):
        return tag("small", "no figures yet")
    wanted = [0.0 if minute is None else minute[0] for minute in each.hour]
    got = [0.0 if minute is None else minute[1] for minute in each.hour]
    known = [minute for minute in each.hour if minute is not None]
    mean = sum(minute[1] for minute in known) / len(known)
    label = f"over the last {counted(len(known), 'minute')} it got {milli(mean)} milli on average"
    return _drawing("hour", len(each.hour), label, _steps("wanted", wanted), _steps("got", got))


def _steps(kind: str, parts: Sequence[float]) -> Html:
    heights = "".join(f"V{_HEIGHT - round(min(1.0, part) * _HEIGHT)}h1" for part in parts)
    return tag("path", class_=kind, d=f"M0 {_HEIGHT}{heights}V{_HEIGHT}Z")


def _drawing(kind: str, width: int, label: str, *shapes: Html) -> Html:
    box = {"viewBox": f"0 0 {width} {_HEIGHT}", "preserveAspectRatio": "none"}
    title = tag("title", label)
    return tag("svg", title, *shapes, class_=kind, role="img", aria_label=label, **box)


def _rect(kind: str, x: int, width: int, y: int, height: int) -> Html:
    return tag("rect", class_=kind, x=x, y=y, width=width, height=height)


def _width(part: float) -> int:
    return round(max(0.0, min(1.0, part)) * _WIDTH)
