"""Whole documents: the page around a view, and the sign-in page. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_ui.html import Html, joined, tag
from partage_ui.views.catalogue import FIRST, VIEWS
from partage_ui.views.parts import Query

_MOST_NAMES: Final = 200
_DOCTYPE: Final = Html("<!doctype html>")


def document(  # noqa: PLR0913 - what is on a page
    path: str, body: Html, query: Query, *, user: str, names: Iterable[str], assets: str
) -> Html:
    title = VIEWS[path].title
    main = tag(
        "main",
        tag("div", tag("h1", title), _filter(query, names), class_="head"),
        tag("section", body, id="view", data_live=f"/live/{path}{query.address(query.page)}", aria_label=title),
        tag("p", id="status", class_="hidden", role="status", aria_live="polite"),
        id="main",
        tabindex=-1,
    )
    return _page(
        title, tag("a", "Skip to content", href="#main", class_="skip"), _header(path, user), main, assets=assets
    )


def login(*, why: str, is_cluster: bool, assets: str) -> Html:
    hint = (
        joined("Paste a token of Kubernetes, such as one that ", tag("code", "kubectl create token NAME"), " prints.")
        if is_cluster
        else joined("Open the address that ", tag("code", "partage ui"), " printed; it works once.")
    )
    field = tag("input", type="password", name="token", id="token", autocomplete="off", required=True, autofocus=True)
    form = tag(
        "form",
        tag("label", "Token", for_="token"),
        field,
        tag("button", "Open", type="submit"),
        method="post",
        action="/login",
    )
    said = tag("p", why, class_="trouble", role="alert") if why else None
    rest = tag(
        "p", "It is checked, and not kept. You see what you may list. ", tag("a", "I am in already", href=f"/{FIRST}")
    )
    return _page(
        "Sign in", tag("main", tag("h1", "partage"), said, tag("p", hint), form, rest, class_="login"), assets=assets
    )


def _header(path: str, user: str) -> Html:
    links = [
        tag("li", tag("a", view.title, href=f"/{name}", aria_current="page" if name == path else None))
        for name, view in VIEWS.items()
    ]
    pause = tag("button", "Pause", type="button", id="pause", aria_pressed="false", hidden=True)
    leave = tag("form", tag("button", "Sign out", type="submit"), method="post", action="/logout")
    return tag(
        "header",
        tag("span", "partage", class_="brand"),
        tag("nav", tag("ul", *links), aria_label="Views"),
        tag("div", pause, tag("span", user, class_="user", title=user), leave, class_="who"),
    )


def _filter(query: Query, names: Iterable[str]) -> Html:
    options = [tag("option", value=name) for name, _ in zip(sorted(names), range(_MOST_NAMES), strict=False)]
    return tag(
        "form",
        tag("label", "Namespace", for_="namespace"),
        tag("input", id="namespace", name="namespace", value=query.namespace, list="namespaces", autocomplete="off"),
        tag("datalist", *options, id="namespaces"),
        tag("label", "Find", for_="q"),
        tag("input", id="q", name="q", type="search", value=query.text, maxlength=253),
        tag("button", "Filter", type="submit"),
        role="search",
        class_="filter",
    )


def _page(title: str, *body: Html, assets: str) -> Html:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · partage"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=f"/static/page.css?v={assets}"),
        tag("script", src=f"/static/page.js?v={assets}", defer=True),
    )
    return joined(_DOCTYPE, tag("html", head, tag("body", *body), lang="en"))
