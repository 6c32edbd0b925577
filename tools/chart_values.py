#!/usr/bin/env python3

"""Generates from the chart's values: the table in its README.md, and the settings in values.schema.json.

The table is made of the comments in values.yaml, each of which is above the value that it describes. The schema of a
daemon's settings is made of their declarations, without those that the chart itself sets. With --check nothing is
written, and files that would change are named with exit code 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon.settings import CommonSettings, Field, fields_of
from partage_cli.rollout.installer.settings import InstallerSettings
from partage_crishim.settings import CrishimSettings
from partage_dra.settings import DraSettings
from partage_isolation.settings import BrokerSettings
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.sharepods.settings import SharePodSettings
from partage_ui.settings import UiSettings

CHART: Final = Path(__file__).resolve().parents[1] / "manifests/chart"
SETTINGS: Final[Mapping[tuple[str, str], type[CommonSettings]]] = {
    ("installer", "settings"): InstallerSettings,
    ("nodes", "crishim"): CrishimSettings,
    ("nodes", "broker"): BrokerSettings,
    ("advertiser", "settings"): AdvertiserSettings,
    ("dra", "settings"): DraSettings,
    ("scheduler", "settings"): SchedulerSettings,
    ("sharepods", "settings"): SharePodSettings,
    ("ui", "settings"): UiSettings,
}
"""Settings of each daemon, by their path among the values."""
SAID_BY_THE_CHART: Final = frozenset(
    (
        *("node_name", "root", "driver_root", "kubeconfig", "namespace", "metrics_address", "stop_deadline_s"),
        *("cluster", "pod_resources", "scheduler_name", "keys", "signing_keys", "elect", "reserve_image", "claims"),
        *("publish", "host", "tree", "node_settings", "listen", "trusted_namespaces", "profile", "library_folder"),
        *("extender_address", "extender_certificate", "extender_key", "extender_callers", "extender_slice", "pod_ip"),
        *("tls_certificate", "tls_key", "ask_brokers"),
    )
)
"""Set by templates or by values of their own, so that there is one place for each."""
OF_UNITS: Final = frozenset(("metrics_address",))
"""Not set for daemons that are units of their node, which open no port by default."""
LINE: Final = re.compile(r"(?P<indent> *)(?:# (?P<comment>.*)|(?P<key>\w+):.*)")
MARKED: Final = re.compile(r"<!-- values -->\n.*?<!-- end -->", re.DOTALL)


def table() -> Iterator[str]:
    """One row for each value that has a comment."""
    text = (CHART / "values.yaml").read_text()
    values = msgspec.yaml.decode(text)
    yield "| value | default | what it is |"
    yield "|---|---|---|"
    path: list[str] = []
    said: list[str] = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match is None:
            said = []
        elif match["comment"] is not None:
            said.append(match["comment"])
        else:
            path = [*path[: len(match["indent"]) // 2], match["key"]]
            if said:
                yield f"| `{'.'.join(path)}` | {_shown(_at(values, path))} | {' '.join(said)} |"
            said = []


def _at(values: dict[str, Any], path: list[str]) -> object:
    found: Any = values
    for key in path:
        found = found[key]
    return found


def _shown(value: object) -> str:
    return f"`{json.dumps(value)}`"


def schema(settings: type[CommonSettings], said: AbstractSet[str] = SAID_BY_THE_CHART) -> dict[str, Any]:
    """The schema of a daemon's settings, which rejects errors before anything is installed."""
    fields = {name: field for name, field in fields_of(settings).items() if name not in said}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _schema_of(field) for name, field in fields.items()},
    }


def _schema_of(field: Field) -> dict[str, Any]:
    found = msgspec.json.schema(field.bounded, schema_hook=lambda _: {"type": "string"})
    if "pattern" in found:
        # Python's anchors, as other dialects of regular expressions write them.
        found["pattern"] = found["pattern"].replace(r"\A", "^").replace(r"\Z", "$")
    return {**found, "description": field.setting.sentence}


def files() -> Iterator[tuple[Path, str]]:
    """Each file with its expected content."""
    written = json.loads((CHART / "values.schema.json").read_text())
    for (above, name), settings in SETTINGS.items():
        said = SAID_BY_THE_CHART - OF_UNITS if above == "nodes" else SAID_BY_THE_CHART
        written["properties"][above]["properties"][name] = schema(settings, said)
    yield CHART / "values.schema.json", json.dumps(written, indent=2, ensure_ascii=False) + "\n"
    rows = "".join(f"{row}\n" for row in table())
    page = (CHART / "README.md").read_text()
    yield CHART / "README.md", MARKED.sub(lambda _: f"<!-- values -->\n{rows}<!-- end -->", page)


def main() -> int:
    stale, checks = 0, "--check" in sys.argv
    for path, wanted in files():
        if path.read_text() != wanted:
            stale += 1
            sys.stdout.write(f"{path.name}: {'not current; run `make manifests`' if checks else 'written'}\n")
            if not checks:
                path.write_text(wanted)
    return 1 if stale and checks else 0


if __name__ == "__main__":
    sys.exit(main())
