"""Precedence of sources: default < [common] < [daemon] < PARTAGE_X < PARTAGE_DAEMON_X < flag."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partage_base.daemon.settings import CommonSettings
from partage_base.daemon.sources import as_toml
from unit.daemon.samples import FILE, Sample, resolved

_WORDS = st.text("abcdefghij-0123456789", min_size=2, max_size=12)
_PATHS = _WORDS.map(lambda word: Path("/run", word))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "node_name": _WORDS,
    "root": _PATHS,
    "driver_root": _PATHS,
    "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
    "log_format": st.sampled_from(["json", "text"]),
    "metrics_address": st.integers(0, 65535).map(lambda port: f"[::1]:{port}") | st.just(""),
    "stop_deadline_s": st.floats(0, 3600, exclude_min=True),
    "listen": _PATHS,
    "tries": st.integers(1, 1000),
    "wait_s": st.floats(0, allow_infinity=False),
    "free": st.floats(allow_infinity=False, allow_nan=False),
    "guard": st.booleans(),
    "enforce": st.sampled_from(["strict", "advisory"]),
    "trusted": st.lists(_WORDS).map(tuple),
    "ports": st.lists(st.integers()).map(tuple),
    "kubeconfig": st.none() | _PATHS,
    "pinned": st.none() | _WORDS,
}
_COMMON = frozenset(CommonSettings.__struct_fields__)
SOURCES = ("common", "crishim", "PARTAGE_", "PARTAGE_CRISHIM_", "--")


def _toml(value: Any) -> object:
    if isinstance(value, tuple):
        return list(value)
    return "" if value is None else str(value) if isinstance(value, Path) else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


@st.composite
def _said(draw: st.DrawFn) -> dict[tuple[str, str], Any]:
    """Values of some settings in some of the sources."""
    pairs = [
        (source, name)
        for name in VALUES
        for source in SOURCES
        if name in _COMMON or source not in {"common", "PARTAGE_"}
    ]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    return {(source, name): draw(VALUES[name]) for source, name in chosen}


def _resolved(said: dict[tuple[str, str], Any]) -> Any:
    tables: dict[str, Any] = {"common": {}, "crishim": {}}
    environment: dict[str, str] = {}
    flags: dict[str, str] = {}
    for (source, name), value in said.items():
        if source in tables:
            tables[source][name] = _toml(value)
        elif source == "--":
            flags[name] = _text(value)
        else:
            environment[source + name.upper()] = _text(value)
    return resolved(tables=tables, environment=environment, flags=flags)


def _origin(source: str, name: str) -> str:
    if source in {"common", "crishim"}:
        return f"{FILE} [{source}]"
    return "--" + name.replace("_", "-") if source == "--" else source + name.upper()


@given(_said())
def test_the_highest_source_that_names_a_setting_wins_and_is_its_origin(said: dict[tuple[str, str], Any]) -> None:
    result = _resolved(said)
    defaults = Sample()
    for name in VALUES:
        saying = [source for source in SOURCES if (source, name) in said]
        expected = said[saying[-1], name] if saying else getattr(defaults, name)
        assert getattr(result.settings, name) == expected
        assert result.origins[name] == (_origin(saying[-1], name) if saying else "default")


@given(_said())
def test_a_printed_configuration_reads_back_as_the_same_settings(said: dict[tuple[str, str], Any]) -> None:
    first = _resolved(said)
    assert resolved(tables=tomllib.loads(as_toml(first, "crishim"))).settings == first.settings


def test_every_field_of_the_sample_is_drawn() -> None:
    assert set(VALUES) == set(Sample.__struct_fields__)


def test_the_node_s_default_name_is_the_host_s_in_lower_case() -> None:
    assert resolved().settings.node_name == os.uname().nodename.lower()


def test_paths_of_the_node_lie_below_the_root() -> None:
    settings = resolved(flags={"root": "/n1"}).settings
    assert settings.below_root(Path("/run/partage")) == Path("/n1/run/partage")
