"""The settings; a mistake is one line with everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_gpu.node.settings import ATTACH, CAPABILITIES, GpuSettings, settings_from
from partage_plugins.testing.examples import container
from partage_plugins.testing.fixtures import PluginHosts
from unit.gpu_node.nodes import FIRST, granted


def test_all_can_be_set() -> None:
    settings = settings_from(
        {
            "PARTAGE_GPU_ATTACH": "nvidia-cdi",
            "PARTAGE_GPU_CAPABILITIES": "compute, video,compute,",
        }
    )
    assert settings == GpuSettings("nvidia-cdi", ("compute", "video"))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PARTAGE_GPU_ATTACH", "CDI", "'CDI'; allowed: one of auto, cdi, nvidia-cdi, nvidia-env, raw"),
        ("PARTAGE_GPU_ATTACH", "", "''; allowed: one of auto"),
        ("PARTAGE_GPU_CAPABILITIES", "compute,cuda", "has 'cuda'; allowed: a list of all, compat32, compute"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings_from({name: value})


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"PARTAGE_GPU_ATTACH.*; PARTAGE_GPU_CAPABILITIES"):
        settings_from({"PARTAGE_GPU_ATTACH": "hand", "PARTAGE_GPU_CAPABILITIES": "cuda"})


def test_a_mistake_is_one_line_at_the_start_and_refuses_cards_and_nothing_else(
    plugin_host: PluginHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTAGE_GPU_ATTACH", "hand")
    host = plugin_host({"gpu": "partage_gpu.node:GpuNode"})
    (fault,) = host.started.faults
    assert fault.startswith("plugin gpu: partage_started: raised ValueError: PARTAGE_GPU_ATTACH is 'hand'")
    assert "\n" not in fault
    assert not host.started.kinds
    with pytest.raises(Exception, match="no plugin for gpu is in force on this node"):
        host.adjust(container(), granted(FIRST))


# ---- The configuration page lists them -------------------------------------------------------------------------------


_PAGE = (Path(__file__).parents[3] / "docs/configuration.md").read_text()


def test_every_variable_has_a_row() -> None:
    for name in (ATTACH, CAPABILITIES):
        assert f"\n| `{name}` |" in _PAGE


def test_every_way_has_a_row_and_can_be_set() -> None:
    rows = _PAGE.partition("| way |")[2].partition("\n\n")[0].splitlines()
    ways = [row.split("`")[1] for row in rows if row.startswith("| `")]
    assert [settings_from({ATTACH: way}).attach for way in ways] == ways
    assert ways == ["cdi", "nvidia-cdi", "nvidia-env", "raw"]
