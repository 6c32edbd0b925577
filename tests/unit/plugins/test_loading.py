"""Plugins are loaded one by one: a failure names its plugin and affects no other."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from partage_plugins import hookimpl
from partage_plugins.api import Kind, KindType, PluginName
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry import entry_points as finding
from partage_plugins.registry.entry_points import Candidate
from partage_plugins.registry.registry import Registry
from support.sides import OTHER, OWNER, THING, candidates, load_node, load_scheduler, plugin


class Misspelt:
    @hookimpl
    def partage_fit(self, request: object, slots: object) -> None: ...


class Unmarked:
    def partage_fits(self, request: object, slots: object) -> None: ...


class WrongArgument:
    @hookimpl
    def partage_fits(self, pod: object) -> None: ...


class Wrapper:
    @hookimpl(wrapper=True)
    def partage_fits(self, request: object, slots: object) -> Any:
        return (yield)


class First:
    @hookimpl(tryfirst=True)
    def partage_fits(self, request: object, slots: object) -> None: ...


class Hookless:
    def fits(self) -> None: ...


class Exits:
    def __init__(self) -> None:
        sys.exit(5)


class Cancels:
    def __init__(self) -> None:
        raise asyncio.CancelledError


class NeedsArguments:
    def __init__(self, where: str) -> None: ...


def _not_a_class() -> None: ...


@pytest.mark.parametrize(
    ("wrong", "step", "why"),
    [
        (Misspelt, "partage_fit", "no such hook on this side"),
        (Unmarked, "partage_fits", "not marked with @hookimpl"),
        (WrongArgument, "register", "pod"),
        (Wrapper, "partage_fits", "wrapper"),
        (First, "partage_fits", "nothing is decided by order"),
        (Hookless, "register", "has no hook"),
        (Exits, "make", "SystemExit: 5"),
        (Cancels, "make", "CancelledError"),
        (NeedsArguments, "make", "where"),
        (plugin(kind="gpu"), "partage_kind", "returned str"),
        (plugin(kind=KindType(name=THING.name, request=dict, grant=dict, part=dict)), "partage_kind", "msgspec.Struct"),
        (plugin(kind=replace(THING, name=Kind("GPU!"))), "partage_kind", "'GPU!'"),
        (plugin(kind=RuntimeError("not today")), "partage_kind", "RuntimeError: not today"),
        (_not_a_class, "import", "a class without arguments"),
    ],
)
def test_a_wrong_plugin_is_named_with_the_reason_and_costs_no_other(wrong: object, step: str, why: str) -> None:
    registry, report = load_scheduler(wrong=wrong, good=OWNER)
    (fault,) = report.faults
    assert (fault.plugin, fault.hook) == ("wrong", step)
    assert why in fault.why
    assert registry.names == ("good",)
    assert registry.owner(THING.name) == "good"


def test_a_hook_of_the_other_side_is_no_hook_of_this_side() -> None:
    assert not load_scheduler(it=plugin(fits=None))[1].faults
    assert load_node(it=plugin(fits=None))[1].faults


def test_a_kind_has_one_owner_and_the_second_is_told_who() -> None:
    registry, report = load_scheduler(first=OWNER, second=OWNER)
    (fault,) = report.faults
    assert str(fault) == "plugin second: partage_kind: kind thing is owned by first; a kind has one owner"
    assert registry.owner(THING.name) == "first"
    assert registry.owner(OTHER.name) is None


def test_two_plugins_of_one_name_are_told_apart_by_their_origin() -> None:
    registry = Registry(scheduler_hooks)
    twice = [Candidate(PluginName("same"), origin, lambda: OWNER) for origin in ("a 1.0", "b 2.0")]
    (fault,) = registry.load(twice).faults
    assert "b 2.0 has the name of a 1.0" in fault.why


def test_a_blocked_plugin_is_not_even_imported() -> None:
    def explode() -> object:
        raise AssertionError("imported")

    registry = Registry(scheduler_hooks)
    report = registry.load([Candidate(PluginName("bad"), "x", explode)], frozenset({PluginName("bad")}))
    assert report.blocked == ("bad",)
    assert not report.faults


def test_a_blocked_name_that_is_not_installed_is_reported() -> None:
    report = Registry(scheduler_hooks).load(candidates(good=OWNER), frozenset({PluginName("godo")}))
    assert report.unknown_blocked == ("godo",)
    assert [name for name, _ in report.loaded] == ["good"]


@pytest.mark.parametrize(("value", "names"), [("", set[str]()), ("a", {"a"}), (" a , b,,", {"a", "b"})])
def test_the_block_switch_is_a_list_of_names(value: str, names: set[str]) -> None:
    assert finding.blocked_names({"PARTAGE_PLUGINS_BLOCK": value}) == names


@pytest.mark.parametrize(
    ("environment", "on"),
    [({}, False), ({"PARTAGE_PLUGINS_TRACE": "0"}, False), ({"PARTAGE_PLUGINS_TRACE": "1"}, True)],
)
def test_the_trace_switch_is_off_unless_set(environment: Mapping[str, str], *, on: bool) -> None:
    assert finding.tracing(environment) is on


def test_installed_plugins_come_ours_first_then_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dist:
        version = "1"

        def __init__(self, name: str) -> None:
            self.name = name

    def entry(name: str, distribution: str) -> Any:
        return type(
            "E", (), {"name": name, "value": f"{name}:X", "dist": Dist(distribution), "load": EntryPoint.load}
        )()

    found = [entry("zebra", "partage"), entry("mole", "other"), entry("ant", "other")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found if group == "partage.node" else [])
    assert [each.name for each in finding.installed("partage.node")] == ["zebra", "ant", "mole"]
    assert finding.installed("partage.node")[1].origin == "other 1 (ant:X)"
