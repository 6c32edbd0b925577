"""The settings; a mistake is one line with everything that is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.discovery.health import Rules
from partage_gpu.discovery.settings import (
    DRA,
    HARMLESS,
    MEMORY_BEYOND,
    POOL,
    QUIET,
    RESERVE,
    SHARE_BLIND,
    Beyond,
    Choice,
    DiscoverySettings,
    PoolSetting,
    discovery_settings,
)
from partage_plugins.api.gpu import MIB
from unit.gpu_discovery.making import ONE


def test_all_can_be_set() -> None:
    settings = discovery_settings(
        {
            DRA: "all",
            POOL: f"3, {ONE},model=NVIDIA H100*,",
            RESERVE: "256",
            MEMORY_BEYOND: f"50%, model=NVIDIA: H100*: 40Gi,{ONE}:0",
            QUIET: "7.5",
            HARMLESS: "94, 63",
            SHARE_BLIND: "yes",
        }
    )
    assert settings == DiscoverySettings(
        shared=PoolSetting("listed", (Choice("number", "3"), Choice("id", ONE), Choice("model", "NVIDIA H100*"))),
        dra=PoolSetting("all"),
        reserve_bytes=256 * MIB,
        memory_beyond=(
            Beyond(None, percent=50),
            Beyond(Choice("model", "NVIDIA: H100*"), size_bytes=40 << 30),
            Beyond(Choice("id", ONE)),
        ),
        share_blind=True,
        rules=Rules(quiet_s=7.5, harmless=frozenset((63, 94))),
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (POOL, "", "''; allowed: auto, all, none, or a list"),
        (POOL, "Auto", "'Auto'; allowed: auto, all, none, or a list"),
        (POOL, "1,card", "'card'; allowed: auto"),
        (POOL, "model=", "'model='; allowed: auto"),
        (POOL, "-1", "'-1'; allowed: auto"),
        (RESERVE, "1G", "'1G'; allowed: a whole number of MiB up to 1048576"),
        (RESERVE, "-1", "'-1'; allowed: a whole number"),
        (RESERVE, "9999999", "'9999999'; allowed: a whole number"),
        (MEMORY_BEYOND, "", "''; allowed: an amount"),
        (MEMORY_BEYOND, "half", "'half'; allowed: an amount"),
        (MEMORY_BEYOND, "-1", "'-1'; allowed: an amount"),
        (MEMORY_BEYOND, "1001%", "'1001%'; allowed: an amount"),
        (MEMORY_BEYOND, "2Pi", "'2Pi'; allowed: an amount"),
        (MEMORY_BEYOND, "8Gi,card:8Gi", "'card:8Gi'; allowed: an amount"),
        (MEMORY_BEYOND, ":8Gi", "':8Gi'; allowed: an amount"),
        (QUIET, "soon", "'soon'; allowed: seconds from 0 to 3600"),
        (QUIET, "nan", "'nan'; allowed: seconds from 0 to 3600"),
        (QUIET, "-1", "'-1'; allowed: seconds from 0 to 3600"),
        (HARMLESS, "94,all", "'all'; allowed: a list of XIDs such as 94,63"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} (is|has) {said}"):
        discovery_settings({name: value})


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ValueError, match=rf"{POOL}.*; {RESERVE}.*; {QUIET}.*; {HARMLESS}"):
        discovery_settings({POOL: "x", RESERVE: "x", QUIET: "x", HARMLESS: "x"})


def mistakes_in(environment: dict[str, str]) -> str:
    try:
        discovery_settings(environment)
    except ValueError as mistake:
        return str(mistake)
    return ""


@given(st.dictionaries(st.sampled_from((POOL, RESERVE, MEMORY_BEYOND, QUIET, HARMLESS)), st.text(max_size=30)))
def test_any_values_are_settings_or_one_printable_line(environment: dict[str, str]) -> None:
    assert mistakes_in(environment).isprintable()
