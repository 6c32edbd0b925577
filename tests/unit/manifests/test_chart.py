"""Files generated from the chart's values are current, and the chart has this version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from partage_base.version import VERSION
from rig.identity.permissions import FOLDER, delivered

CHART = FOLDER / "chart"
VALUES: dict[str, Any] = msgspec.yaml.decode((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())


def test_readme_and_schema_say_what_values_and_settings_say() -> None:
    command = [sys.executable, str(FOLDER.parent / "tools/chart_values.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_chart_and_what_it_installs_are_of_this_version() -> None:
    (chart,) = delivered("chart/Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_every_value_is_explained() -> None:
    page = (CHART / "README.md").read_text()
    leaves = [f"{name}.{below}" for name, value in VALUES.items() if isinstance(value, dict) for below in value]
    names = [name for name, value in VALUES.items() if not isinstance(value, dict)]
    rows = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert [name for name in (*names, *leaves) if not any(f"{row}.".startswith(f"{name}.") for row in rows)] == []


@pytest.mark.parametrize("name", [name for name, value in VALUES.items() if isinstance(value, dict)])
def test_the_schema_has_the_values_that_there_are_and_no_others(name: str) -> None:
    said = SCHEMA["properties"][name]
    assert said["additionalProperties"] is False
    assert said["properties"].keys() == VALUES[name].keys()


def test_no_value_is_beside_the_schema() -> None:
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
