"""Adjacent versions read each other's data on a node: processes, files and annotations outlive an upgrade.

`recorded.json` is the output of a release and never changes: containers that it created may run for months. A changed
form gets a new number in `installation.versions.contracts` and a new line here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.installation.forms.made import forms

RECORDED: dict[str, str] = json.loads(Path(__file__).with_name("recorded.json").read_text())
FORMS = forms()


def test_every_form_is_recorded() -> None:
    assert FORMS.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_release_wrote_is_read_as_it_was_meant(name: str) -> None:
    assert FORMS[name].read(bytes.fromhex(RECORDED[name])) == FORMS[name].means


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_written_now_has_all_that_a_release_reads(name: str) -> None:
    """JSON readers ignore unknown fields; in all other forms every byte matters."""
    now, recorded = FORMS[name].written, bytes.fromhex(RECORDED[name])
    if recorded.startswith(b"{"):
        require_within(json.loads(recorded), json.loads(now))
    else:
        assert now == recorded


def require_within(recorded: object, now: object) -> None:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name, value in recorded.items():
            assert name in now
            require_within(value, now[name])
    elif isinstance(recorded, list) and isinstance(now, list):
        assert len(recorded) == len(now)
        for one, other in zip(recorded, now, strict=True):
            require_within(one, other)
    else:
        assert recorded == now
