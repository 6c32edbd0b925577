"""crishim's settings are documented as they are, and those that cannot go together are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.daemon.settings import fields_of
from partage_base.daemon.sources import shown_default
from partage_crishim.parts import Policy
from partage_crishim.settings import CrishimSettings

PAGE = (Path(__file__).parents[4] / "docs/crishim.md").read_text()
OWN = {name: field for name, field in fields_of(CrishimSettings).items() if not field.common}


@pytest.mark.parametrize("name", OWN)
def test_every_setting_stands_on_the_page_with_its_default_and_its_sentence(name: str) -> None:
    field, default = OWN[name], getattr(CrishimSettings(), name)
    assert f"| `{name}` | `{shown_default(field, default)}` | {field.setting.sentence} |" in PAGE


def test_the_page_has_no_setting_that_does_not_exist() -> None:
    table = PAGE[PAGE.index("| setting | default |") :].splitlines()[2:]
    assert [row.split("`")[1] for row in table if row.startswith("|")] == list(OWN)


def test_a_drain_that_would_outlast_the_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="drain_s is 30 and stop_deadline_s 20"):
        CrishimSettings(drain_s=30)


def test_handlers_that_run_nvidias_runtime_are_known_to_run_containers() -> None:
    settings = CrishimSettings(container_handlers=("mine",), nvidia_handlers=("gpu",))
    assert Policy.of(settings).grants.confinement.container_handlers == ("mine", "gpu")
