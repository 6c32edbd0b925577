"""Invalid settings are refused by name, all at once, with the allowed values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from partage_base.daemon.errors import CONFIGURATION, BadConfiguration
from partage_base.daemon.resolution import TomlFile, resolve
from partage_base.daemon.settings import CommonSettings, Setting, fields_of
from unit.daemon.samples import FILE, Sample, resolved

_NAMES = st.sampled_from(Sample.__struct_fields__)
_TOML = st.recursive(
    st.booleans()
    | st.integers()
    | st.integers(10**300, 10**310)
    | st.floats()
    | st.text()
    | st.datetimes()
    | st.dates()
    | st.times(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _refusal(**sources: Any) -> Sequence[str]:
    """The lines of the configuration error; none if the settings are valid."""
    try:
        resolved(**sources)
    except BadConfiguration as error:
        return error.mistakes
    return ()


@given(_NAMES, _TOML)
def test_any_toml_value_of_any_setting_gives_settings_or_one_line_that_names_it(name: str, value: object) -> None:
    lines = _refusal(tables={"crishim": {name: value}})
    assert len(lines) <= 1
    assert all(
        line.startswith(f"{name} is ") and f"in {FILE} [crishim]" in line and line.isprintable() for line in lines
    )


@given(_NAMES, st.text(st.characters()))
def test_any_text_in_a_variable_gives_settings_or_one_line_that_names_it(name: str, text: str) -> None:
    variable = f"PARTAGE_CRISHIM_{name.upper()}"
    lines = _refusal(environment={variable: text})
    assert len(lines) <= 1
    assert all(f"in {variable};" in line and line.isprintable() for line in lines)


@given(st.dictionaries(st.text() | st.sampled_from(["common", "crishim", "broker"]), _TOML, max_size=4))
def test_any_file_gives_settings_or_lines_that_name_it(tables: dict[str, Any]) -> None:
    assert all(FILE in line for line in _refusal(tables=tables))


def _mistakes(
    *,
    tables: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, str] | None = None,
) -> tuple[str, ...]:
    with pytest.raises(BadConfiguration) as caught:
        resolved(tables=tables, environment=environment, flags=flags)
    assert caught.value.exit_code == CONFIGURATION == 78
    return caught.value.mistakes


def test_a_wrong_type_in_the_file_names_the_file_and_the_table() -> None:
    assert _mistakes(tables={"crishim": {"tries": "3"}}) == (
        f"tries is '3' in {FILE} [crishim]; allowed: an integer, at least 1, at most 1000",
    )


def test_a_wrong_type_in_a_variable_names_the_variable() -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_WAIT_S": "soon"}) == (
        "wait_s is 'soon' in PARTAGE_CRISHIM_WAIT_S; allowed: a number, at least 0",
    )


def test_a_wrong_type_in_a_flag_names_the_flag() -> None:
    assert _mistakes(flags={"log_level": "loud"}) == (
        "log_level is 'loud' in --log-level; allowed: one of debug, info, warning, error",
    )


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", "0x10", "1_000", " 1", "٣", ""])
def test_what_is_no_finite_number_is_refused(number: str) -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_FREE": number})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, True, "1", [], dt.time()])
def test_what_is_no_finite_number_is_refused_in_the_file(value: object) -> None:
    assert _mistakes(tables={"crishim": {"free": value}})


@pytest.mark.parametrize("path", ["", "/a\nb", "/a\0b", "/\udcff", "/\x1b[31m"])
def test_a_path_that_is_empty_or_unprintable_is_refused(path: str) -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_LISTEN": path})


@pytest.mark.parametrize("address", ["9400", ":9400", "host", "host:", "host:65536", "::1:9400", "a b:1", "host:-1"])
def test_an_address_without_host_or_port_is_refused_in_words(address: str) -> None:
    (line,) = _mistakes(flags={"metrics_address": address})
    assert line.endswith("allowed: host:port, [IPv6 address]:port, or empty for off")


def test_a_wrong_item_refuses_its_list() -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_PORTS": "1, two"}) == (
        "ports is '1, two' in PARTAGE_CRISHIM_PORTS; allowed: a list, each an integer",
    )


@pytest.mark.parametrize("item", ["a\x1b[31m", "\udcff", "a\u2028b"])
def test_an_unprintable_item_refuses_its_list(item: str) -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_TRUSTED": f"a,{item}"})
    assert _mistakes(tables={"crishim": {"trusted": ["a", item]}})


def test_a_text_is_no_list_in_the_file() -> None:
    assert _mistakes(tables={"crishim": {"trusted": "a,b"}})


def test_all_mistakes_of_all_sources_are_told_at_once() -> None:
    lines = _mistakes(
        tables={"common": {"root": 1}, "crishim": {"tries": 0, "gard": True}, "crihsim": {}},
        environment={"PARTAGE_CRISHIM_TRYES": "1", "PARTAGE_LOG_LEVEL": "x"},
        flags={"tries": "many"},
    )
    assert [line.split(" in ")[0].split("; ")[0] for line in lines] == [
        f"{FILE}: unknown table or key 'crihsim'",
        f"{FILE} [crishim]: unknown key 'gard'",
        "unknown variable PARTAGE_CRISHIM_TRYES",
        "root is 1",
        "tries is 0",
        "log_level is 'x'",
        "tries is 'many'",
    ]


def test_a_mistake_in_a_lower_source_is_told_even_where_a_higher_one_wins() -> None:
    assert _mistakes(tables={"crishim": {"tries": 0}}, flags={"tries": "1"})


def test_an_unknown_key_comes_with_the_nearest_known_one() -> None:
    assert _mistakes(tables={"crishim": {"node-name": "a"}}) == (
        f"{FILE} [crishim]: unknown key 'node-name'; did you mean node_name?",
    )


def test_a_key_that_resembles_none_comes_with_all_that_are_known() -> None:
    (line,) = _mistakes(tables={"common": {"zzz": 1}})
    assert line == (
        f"{FILE} [common]: unknown key 'zzz'; known: "
        "node_name, root, driver_root, log_level, log_format, metrics_address, stop_deadline_s"
    )


def test_a_daemon_s_own_setting_has_no_place_in_the_common_table() -> None:
    assert "unknown key 'tries'" in _mistakes(tables={"common": {"tries": 1}})[0]


def test_a_value_where_a_table_must_stand_is_refused() -> None:
    assert _mistakes(tables={"crishim": 1}) == (f"{FILE}: crishim is 1; allowed: a table, written [crishim]",)


def test_an_unknown_variable_of_this_daemon_is_refused_with_the_nearest_known_one() -> None:
    assert _mistakes(environment={"PARTAGE_CRISHIM_NODENAME": "a"}) == (
        "unknown variable PARTAGE_CRISHIM_NODENAME; did you mean PARTAGE_CRISHIM_NODE_NAME?",
    )


@pytest.mark.parametrize(
    "variable",
    [
        "PARTAGE_PLUGINS_BLOCK",
        "PARTAGE_PLUGINS_TRACE",
        "PARTAGE_BROKER_ANYTHING",
        "PARTAGE_TRIES",
        "PARTAGE_CRISHIM_SERVICE_HOST",
        "PARTAGE_CRISHIM_SERVICE_PORT_HTTPS",
        "PARTAGE_CRISHIM_PORT",
        "PARTAGE_CRISHIM_PORT_443_TCP",
        "PARTAGE_CRISHIM_PORT_443_TCP_ADDR",
        "PARTAGE_CRISHIM_METRICS_SERVICE_HOST",
    ],
)
def test_variables_of_others_and_of_the_cluster_are_let_through(variable: str) -> None:
    assert resolved(environment={variable: "tcp://10.0.0.1:443"}).settings == Sample()


def test_tables_of_other_daemons_are_their_own_business() -> None:
    assert resolved(tables={"broker": {"whatever": 1}}).settings == Sample()


def test_a_value_is_shown_on_one_bounded_line() -> None:
    (line,) = _mistakes(tables={"crishim": {"tries": "x\n" * 1000}})
    assert line.isprintable()
    assert len(line) < 300


def test_settings_that_do_not_go_together_are_refused_in_the_type_s_own_words() -> None:
    class Pair(CommonSettings, frozen=True, kw_only=True):
        low: Annotated[int, Setting("Low.")] = 1
        high: Annotated[int, Setting("High.")] = 2

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low is above high")

    with pytest.raises(BadConfiguration, match="settings that don't go together: low is above high"):
        resolve(Pair, "crishim", toml=TomlFile(), environment={}, flags={"low": "3"})


def _type_with(name: str, annotation: Any, default: Any) -> type[CommonSettings]:
    made = msgspec.defstruct("Broken", [(name, annotation, default)], bases=(CommonSettings,), kw_only=True)
    return cast("type[CommonSettings]", made)


@pytest.mark.parametrize(
    ("annotation", "default", "why"),
    [
        (int, 1, "must hold one Setting"),
        (Annotated[int, Setting("a"), Setting("b")], 1, "must hold one Setting"),
        (Annotated[int, Setting("a")], msgspec.NODEFAULT, "must have a default"),
        (Annotated[dict[str, int], Setting("a")], {}, "has no text form"),
        (Annotated[Path | int, Setting("a")], 1, "has no text form"),
        (Annotated[Literal[1, 2], Setting("a")], 1, "has no text form"),
        (Annotated[tuple[int, str], Setting("a")], (1, ""), "has no text form"),
        (Annotated[tuple[tuple[int, ...], ...], Setting("a")], (), "has no text form"),
        (Annotated[int, Meta(min_length=1), Setting("a")], 1, "min_length"),
    ],
)
def test_a_settings_type_that_can_not_work_is_refused_when_the_daemon_is_built(
    annotation: Any, default: Any, why: str
) -> None:
    with pytest.raises(TypeError, match=why):
        fields_of(_type_with("field", annotation, default))


@pytest.mark.parametrize("name", ["config", "version", "help", "print_config", "port", "metrics_port", "service_host"])
def test_a_setting_may_not_take_a_name_that_means_something_else(name: str) -> None:
    with pytest.raises(TypeError, match="the name is taken"):
        fields_of(_type_with(name, Annotated[int, Setting("a")], 1))


def test_bounds_are_told_in_words() -> None:
    class Bounded(CommonSettings, frozen=True, kw_only=True):
        share: Annotated[int, Meta(gt=0, lt=9, multiple_of=2), Setting("Share.")] = 2

    assert fields_of(Bounded)["share"].allowed == "an integer, above 0, below 9, a multiple of 2"
